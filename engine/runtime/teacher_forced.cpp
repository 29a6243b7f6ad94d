#include "engine/runtime/teacher_forced.h"

#include <algorithm>
#include <cmath>
#include <new>

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "engine/inspect/monotonicity.h"
#include "engine/plain/error.h"
#include "engine/runtime/execution.h"
#include "engine/runtime/kernel_facts.h"
#include "engine/runtime/teacher_forced_data.h"

namespace hydrascope {
namespace {

constexpr FactKinds kKinds{.entropy = true, .kl = true, .change = true, .spearman = true};

// A mean over items.
struct ItemMean {
  double sum = 0, count = 0;

  // One value for each item (B).
  void add(const at::Tensor& items) {
    sum += items.sum().item<double>();
    count += static_cast<double>(items.numel());
  }
  double value() const { return count > 0 ? sum / count : KernelMeans::undefined; }
};

// One kernel in one layer.
struct LayerMeans {
  ItemMean kl, entropy, spearman, clamped, ratio, cosine, error;

  void add(const KernelFacts& facts, const AttentionInput& input) {
    const auto heads = [](const at::Tensor& values) { return values.mean(1); };
    if (facts.entropy.defined()) entropy.add(heads(facts.entropy));
    if (facts.kl.defined()) {
      kl.add(heads(facts.kl));
      clamped.sum += facts.clamped_share * static_cast<double>(input.q.size(0));
      clamped.count += static_cast<double>(input.q.size(0));
    }
    if (facts.spearman.defined() && input.q.size(2) >= 3) spearman.add(heads(facts.spearman));
    ratio.add(heads(facts.change.select(2, 0)));
    error.add(heads(facts.change.select(2, 2)));
    const at::Tensor something = facts.change.select(2, 0) != 0;
    const at::Tensor sum = at::where(something, facts.change.select(2, 1), 0.0).sum(1);
    const at::Tensor count = something.sum(1);
    cosine.add((sum / count).masked_select(count > 0));
  }

  KernelMeans means() const {
    KernelMeans means;
    means.kl = kl.value();
    means.entropy = entropy.value();
    means.spearman = spearman.value();
    means.clamped_share = clamped.value();
    means.ratio = ratio.value();
    means.cosine = cosine.value();
    means.relative_error = error.value();
    return means;
  }
};

KernelMeans mean_of(const std::vector<KernelMeans>& layers) {
  KernelMeans mean;
  for (const auto member :
       {&KernelMeans::kl, &KernelMeans::entropy, &KernelMeans::spearman, &KernelMeans::clamped_share,
        &KernelMeans::ratio, &KernelMeans::cosine, &KernelMeans::relative_error}) {
    double sum = 0;
    for (const KernelMeans& layer : layers) sum += layer.*member;
    mean.*member = sum / static_cast<double>(layers.size());
  }
  return mean;
}

std::vector<KernelSpec> kernels_of(const TeacherForcedRequest& request) {
  std::vector<KernelSpec> kernels = request.kernels;
  if (kernels.empty())
    for (const KernelInfo& info : kernel_infos())
      if (has_distributions(info)) kernels.push_back({info.name, {}});
  for (KernelSpec& kernel : kernels) kernel = seeded(kernel, request.execution.seed);
  return kernels;
}

// Sums over one series of sequences.
class Measurement {
public:
  Measurement(const Model& model, const std::vector<KernelSpec>& kernels)
      : kernels_(static_cast<std::size_t>(model.info().layers)),
        sums_(kernels_.size(), std::vector<LayerMeans>(kernels.size())),
        zero_denominators_(kernels.size()),
        scores_(kernels_.size(), std::vector<HeadScores>(static_cast<std::size_t>(model.info().heads))) {
    for (std::size_t layer = 0; layer < kernels_.size(); ++layer)
      for (const KernelSpec& kernel : kernels)
        kernels_[layer].push_back(layer_kernel(model, static_cast<int>(layer), kernel));
  }

  void add(int layer, const AttentionInput& input) {
    const auto position = static_cast<std::size_t>(layer);
    const std::vector<KernelFacts> facts = kernel_facts(kKinds, input, kernels_[position]);
    for (std::size_t i = 0; i < facts.size(); ++i) {
      sums_[position][i].add(facts[i], input);
      zero_denominators_[i] += facts[i].zero_denominators;
    }
    add_scores(scores_[position], score_range(input));
    if (layer != 0) return;
    items_ += input.q.size(0);
    tokens_ += input.q.size(0) * input.q.size(2);
  }

  // Leaves out what cannot run on such an input, and says so. Before the first add().
  std::vector<std::string> drop_unsupported(const AttentionInput& input) {
    std::vector<std::string> reasons;
    for (std::size_t i = zero_denominators_.size(); i-- > 0;) {
      const Kernel& kernel = *kernels_.front()[i].kernel;
      const Support support = kernel.supports(shape_of(input));
      if (support.ok) continue;
      reasons.push_back(fmt::format("{} was left out: {}", kernel.spec().text(), support.reason));
      const auto at = static_cast<std::ptrdiff_t>(i);
      zero_denominators_.erase(zero_denominators_.begin() + at);
      for (auto& layer : sums_) layer.erase(layer.begin() + at);
      for (auto& layer : kernels_) layer.erase(layer.begin() + at);
    }
    return reasons;
  }

  std::int64_t items() const { return items_; }

  void finish(const SeriesOfData& series, TeacherForcedOutcome& outcome) {
    const auto length = series.series->length();
    for (std::size_t i = 0; i < zero_denominators_.size(); ++i) {
      KernelMeasure measure;
      measure.kernel = kernels_.front()[i].kernel->spec();
      measure.data = series.data;
      measure.length = length;
      measure.items = items_;
      measure.tokens = tokens_;
      for (std::size_t layer = 0; layer < kernels_.size(); ++layer) {
        measure.layers.push_back(sums_[layer][i].means());
        const LayerKernel& kernel = kernels_[layer][i];
        measure.untrained = measure.untrained || (kernel.kernel->info().trainable && !kernel.own_parameters);
      }
      measure.mean = mean_of(measure.layers);
      check_numbers(measure);
      measure.zero_denominators = zero_denominators_[i];
      outcome.measures.push_back(std::move(measure));
    }
    for (std::vector<HeadScores>& heads : scores_)
      for (HeadScores& head : heads) head.share_below /= static_cast<double>(items_);
    outcome.scores.push_back({series.data, length, std::move(scores_)});
  }

private:
  // The model's own numbers are finite by now: these come of the kernel's parameters.
  static void check_numbers(const KernelMeasure& measure) {
    const KernelMeans& mean = measure.mean;
    const bool distributions = has_distributions(kernel_info(measure.kernel.name));
    if (std::isfinite(mean.ratio) && (!distributions || std::isfinite(mean.entropy))) return;
    throw Error(measure.kernel.text(), "its weights or outputs are not finite",
                "see that the adapter's parameters are, or leave the adapter out with --no-adapter");
  }

  static void add_scores(std::vector<HeadScores>& heads, const ScoreRange& range) {
    for (std::size_t i = 0; i < heads.size(); ++i) {
      const auto head = static_cast<std::int64_t>(i);
      heads[i].smallest = std::min(heads[i].smallest, range.smallest.select(1, head).min().item<double>());
      heads[i].largest = std::max(heads[i].largest, range.largest.select(1, head).max().item<double>());
      heads[i].share_below += range.share_below.select(1, head).sum().item<double>();
    }
  }

  std::vector<std::vector<LayerKernel>> kernels_; // by layer, by kernel
  std::vector<std::vector<LayerMeans>> sums_;
  std::vector<std::int64_t> zero_denominators_; // by kernel
  std::vector<std::vector<HeadScores>> scores_; // by layer, by head
  std::int64_t items_ = 0, tokens_ = 0;
};

TeacherForcedOutcome measure(const TeacherForcedRequest& request, const MeasureProgress& progress,
                             const std::stop_token& stop, const ModelSource& source) {
  ModelStore store(source);
  const ModelInfo base = store.base(request.model_folder)->info();
  const Schedule softmax{std::vector<KernelSpec>(static_cast<std::size_t>(base.layers))};
  const AppliedModel applied =
      store.apply(request.model_folder, request.adapters, softmax, request.execution.dtype);
  const Model& model = *applied.model;
  const std::vector<KernelSpec> kernels = kernels_of(request);

  TeacherForcedOutcome outcome;
  outcome.model_hash = store.base(request.model_folder)->hash();
  for (const AppliedAdapter& adapter : applied.adapters) outcome.adapters.push_back(adapter.info);
  const auto note = [&](const std::string& text) { outcome.notes.push_back(text); };
  const std::vector<SeriesOfData> all = make_series(applied, request, outcome.notes);
  const bool skip = request.skip_unsupported || request.kernels.empty();
  std::int64_t done = 0, total = 0;
  for (const SeriesOfData& series : all) total += series.series->items() * base.layers;
  for (const SeriesOfData& series : all) {
    Measurement measurement(model, kernels);
    series.series->visit(
        model,
        [&](int layer, const AttentionInput& input) {
          if (skip && measurement.items() == 0)
            for (const std::string& reason : measurement.drop_unsupported(input)) note(reason);
          measurement.add(layer, input);
          done += input.q.size(0);
          if (progress) progress(done, total);
        },
        stop, note);
    if (measurement.items() == 0)
      throw Error(series.data.string(), "holds no picture", "name another folder");
    measurement.finish(series, outcome);
  }
  return outcome;
}

} // namespace

TeacherForcedOutcome measure_teacher_forced(const TeacherForcedRequest& request,
                                            const MeasureProgress& progress, const std::stop_token& stop,
                                            const ModelSource& source) {
  check_device(request.execution.device);
  const ThreadCount threads(request.execution.threads);
  try {
    return measure(request, progress, stop, source);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw Error("kl", text.substr(0, text.find('\n')), "try shorter texts or fewer kernels");
  } catch (const std::bad_alloc&) {
    throw Error("kl", "out of memory", "use smaller --lengths or fewer kernels");
  }
}

} // namespace hydrascope
