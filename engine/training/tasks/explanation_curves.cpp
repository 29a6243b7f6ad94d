#include "engine/training/tasks/explanation_curves.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include <ATen/ops/cat.h>

#include "engine/run/placement.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/target.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/loop/autocast.h"

namespace hydrascope::training {
namespace {

ClassPlan plan_of(const PreparedModel& prepared) {
  ClassPlan plan;
  plan.classes = prepared.classes;
  return plan;
}

// Patches nearer to the middle of the picture are larger; the values of other tokens are not used.
TokenMap nearness_to_centre(const RunResult& run) {
  TokenMap map{"centre", "baseline: patches nearest to the middle first", {}};
  map.values.resize(static_cast<std::size_t>(run.prefix_tokens));
  const auto from_middle = [](const std::int64_t i, const std::int64_t count) {
    return static_cast<float>(i) - static_cast<float>(count - 1) / 2;
  };
  for (std::int64_t row = 0; row < run.rows; ++row)
    for (std::int64_t column = 0; column < run.columns; ++column)
      map.values.push_back(-std::hypot(from_middle(row, run.rows), from_middle(column, run.columns)));
  return map;
}

MeanWithError mean_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  MeanWithError result;
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  if (values.size() > 1) result.standard_error = std::sqrt(squares / (count - 1) / count);
  return result;
}

MeanWithError mean_difference(const std::vector<double>& of, const std::vector<double>& from) {
  std::vector<double> differences(of.size());
  std::ranges::transform(of, from, differences.begin(), std::minus());
  return mean_of(differences);
}

} // namespace

ExplanationCurves::ExplanationCurves(const PreparedModel& prepared, const Placement& placement,
                                     const int steps, const int batch)
    : prepared_(prepared),
      type_(autocasts(placement) ? placement.dtype : at::kFloat),
      runnable_(runnable(prepared, {}, plan_of(prepared))),
      steps_(steps),
      batch_(static_cast<std::size_t>(std::max(1, batch))) {}

std::vector<double> ExplanationCurves::probabilities(const ModelInput& whole,
                                                     const std::vector<std::vector<std::int64_t>>& hidden,
                                                     const std::int64_t target) const {
  const Model& model = *prepared_.model;
  const Autocast autocast(c10::kCPU, type_);
  std::vector<double> result;
  for (std::size_t first = 0; first < hidden.size(); first += batch_) {
    std::vector<at::Tensor> pixels;
    for (std::size_t i = first; i < std::min(hidden.size(), first + batch_); ++i)
      pixels.push_back(model.with_hidden(whole, hidden[i]).pixels);
    ModelInput input = whole;
    input.pixels = at::cat(pixels);
    const at::Tensor logits = runnable_.logits({}, placed(model, input), 0).to(at::kCPU, at::kDouble);
    const at::Tensor of_target = probabilities_of(logits, model.info()).select(1, target).contiguous();
    result.insert(result.end(), of_target.const_data_ptr<double>(),
                  of_target.const_data_ptr<double>() + of_target.numel());
  }
  return result;
}

void ExplanationCurves::add(const RunResult& run, std::vector<TokenMap> maps, const Image& picture,
                            const int size, const std::int64_t target) {
  maps.push_back(nearness_to_centre(run));
  std::vector<std::int64_t> patches(static_cast<std::size_t>(run.rows * run.columns));
  std::iota(patches.begin(), patches.end(), run.prefix_tokens);
  const auto curves_of = [&](const double of_whole, const DeletionProbe& probe) {
    const DeletionKey key{.steps = steps_, .seed = static_cast<std::uint64_t>(items_)};
    std::vector<DeletionResult> curves;
    for (const TokenMap& map : maps)
      curves.push_back(deletion_curves(key, map.values, patches, {of_whole, of_whole}, probe));
    return curves;
  };
  // The same calls twice: first to know what is to be hidden, then with the probabilities of all, from
  // batches.
  std::vector<std::vector<std::int64_t>> hidden = {{}};
  curves_of(0, [&](std::vector<std::int64_t> tokens) {
    hidden.push_back(std::move(tokens));
    return HiddenTarget{0, 0};
  });
  const std::vector<double> found =
      probabilities(prepare_picture(*prepared_.model, picture, size), hidden, target);
  std::size_t next = 1;
  const auto curves = curves_of(found.front(), [&](const std::vector<std::int64_t>& /*tokens*/) {
    const double probability = found[next++];
    return HiddenTarget{probability, probability};
  });
  if (items_++ == 0) {
    for (const TokenMap& map : maps) areas_.push_back({map.name, map.what, {}, {}});
    areas_.push_back({"random", "baseline: patches in a random order", {}, {}});
  }
  // Hiding what matters least first leaves the same patches as showing what matters most first.
  for (std::size_t i = 0; i < curves.size(); ++i) {
    areas_[i].deletion.push_back(curves[i].most_first.area);
    areas_[i].insertion.push_back(curves[i].least_first.area);
  }
  areas_.back().deletion.push_back(curves.front().random.area);
  areas_.back().insertion.push_back(curves.front().random.area);
}

CurvesOutcome ExplanationCurves::outcome() const {
  CurvesOutcome outcome;
  outcome.items = items_;
  for (auto of = areas_.begin(); of != areas_.end(); ++of) {
    outcome.methods.push_back({of->name, of->what, mean_of(of->deletion), mean_of(of->insertion)});
    for (auto from = of + 1; from != areas_.end(); ++from)
      outcome.differences.push_back({of->name, from->name, mean_difference(of->deletion, from->deletion),
                                     mean_difference(of->insertion, from->insertion)});
  }
  return outcome;
}

} // namespace hydrascope::training
