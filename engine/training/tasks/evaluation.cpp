#include "engine/training/tasks/evaluation.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/run/finite_check.h"
#include "engine/training/data/class_plan.h"

namespace hydrascope::training {
namespace {

// By id, else by label, else by number where the class has no id: config.json's id2label is keyed by it.
std::int64_t class_of(const std::vector<AdapterInfo::Class>& classes, const std::string& name) {
  if (const std::int64_t matched = matching_class(classes, name); matched >= 0) return matched;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && number < classes.size() && classes[number].id.empty() ? static_cast<std::int64_t>(number)
                                                                        : -1;
}

} // namespace

Evaluation::Evaluation(const EvaluateRequest& request, const TrainingObserver& observer,
                       const std::stop_token& stop, std::shared_ptr<ModelStore> models)
    : request_(request),
      observer_(observer),
      stop_(stop),
      models_(std::move(models)),
      prepared_(prepare_model(*models_, request.model_folder, request.adapters, request.schedule,
                              request.execution, /*for_training=*/false)),
      counts_(prepared_.classes.size()) {
  if (prepared_.classes.empty())
    throw UsageError("--model", "has no classifier", "apply an adapter that brings one with --adapter");
}

std::vector<std::int64_t> Evaluation::classes_of(const std::vector<std::string>& names,
                                                 const std::string& what) const {
  std::vector<std::int64_t> targets;
  std::vector<std::string> unknown;
  for (const auto& name : names) {
    targets.push_back(class_of(prepared_.classes, name));
    if (targets.back() < 0) unknown.push_back(name);
  }
  if (unknown.empty()) return targets;
  std::vector<std::string> known;
  for (const auto& one : prepared_.classes) {
    if (known.size() == 5) {
      known.emplace_back("…");
      break;
    }
    known.push_back(one.id.empty() ? one.label : fmt::format("{} ({})", one.id, one.label));
  }
  throw UsageError("--data",
                   fmt::format("these {} are no class of the model: {}", what, fmt::join(unknown, ", ")),
                   fmt::format("use the ids or labels of its {} classes: {}", prepared_.classes.size(),
                               fmt::join(known, ", ")));
}

bool Evaluation::means(const std::string& name, const std::int64_t target) const {
  return class_of(prepared_.classes, name) == target;
}

void Evaluation::count(const std::vector<std::int64_t>& targets, const at::Tensor& logits) {
  check_finite(logits, *prepared_.model);
  const at::Tensor best = std::get<1>(logits.topk(std::min<std::int64_t>(5, logits.size(1)), 1)).contiguous();
  const auto width = static_cast<std::size_t>(best.size(1));
  const std::span<const std::int64_t> all(best.const_data_ptr<std::int64_t>(), targets.size() * width);
  for (std::size_t row = 0; row < targets.size(); ++row)
    counts_.add(targets[row], all.subspan(row * width, width));
}

void Evaluation::note(std::string text) {
  notes_.push_back(std::move(text));
  if (!observer_) return;
  TrainingProgress progress;
  progress.note = notes_.back();
  observer_(progress);
}

void Evaluation::progress(const std::int64_t done, const std::int64_t all) {
  if (stop_.stop_requested()) throw Cancelled();
  if (!observer_) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
  TrainingProgress progress;
  progress.phase = "validate";
  progress.step = done;
  progress.steps = all;
  progress.items_per_second = static_cast<double>(done) / std::max(1e-9, seconds.count());
  progress.held_out.accuracy = top1(counts_);
  observer_(progress);
}

EvaluateOutcome Evaluation::outcome() const {
  EvaluateOutcome outcome;
  if (counts_.items == 0)
    throw Error(request_.data.string(), "none of its pictures can be read", "name another folder");
  outcome.items = counts_.items;
  outcome.classes = static_cast<std::int64_t>(prepared_.classes.size());
  outcome.top1 = top1(counts_);
  outcome.top5 = top5(counts_);
  if (prepared_.model->info().input == InputKind::text) {
    outcome.matthews = matthews_correlation(counts_);
    const bool two = prepared_.classes.size() == 2;
    outcome.f1 = two ? f1_of_class(counts_, 1) : f1_macro(counts_);
    outcome.f1_of = two ? fmt::format("class 1 ({})", prepared_.classes[1].label) : std::string("macro");
  }
  outcome.model_hash = prepared_.model_hash;
  outcome.adapters = prepared_.adapters;
  outcome.notes = notes_;
  return outcome;
}

} // namespace hydrascope::training
