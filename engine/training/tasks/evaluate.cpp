#include "engine/training/tasks/evaluation.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/measure/correlation.h"
#include "engine/run/inputs.h"
#include "engine/run/pass.h"
#include "engine/run/predicted_number.h"
#include "engine/run/run.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/loop/autocast.h"
#include "engine/training/loop/loop.h"
#include "engine/training/loop/trained_parameters.h"

namespace hydrascope::training {
namespace {

// By id, else by label, else, for a class without an id, by number, the key of config.json's id2label.
std::int64_t class_of(const std::vector<AdapterInfo::Class>& classes, const std::string& name) {
  if (const std::int64_t matched = matching_class(classes, name); matched >= 0) return matched;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && number < classes.size() && classes[number].id.empty() ? static_cast<std::int64_t>(number)
                                                                        : -1;
}

} // namespace

Evaluation::Evaluation(const Placement& placement, const EvaluateRequest& request,
                       const TrainingObserver& observer, const std::stop_token& stop,
                       std::shared_ptr<ModelStore> models)
    : placement_(placement),
      request_(request),
      observer_(observer),
      stop_(stop),
      models_(std::move(models)),
      prepared_(prepare_model(*models_, request.model_folder, request.adapters, request.schedule,
                              autocasts(placement) ? Placement{} : placement, /*for_training=*/false)),
      counts_(prepared_.classes.size()) {
  if (prepared_.classes.empty())
    throw UsageError("--model", "has no classifier", "apply an adapter that brings one with --adapter");
  std::string untrained = untrained_note(*prepared_.model, prepared_.adapters, prepared_.schedule);
  if (!untrained.empty()) note(std::move(untrained));
}

std::vector<std::int64_t> Evaluation::classes_of(const std::vector<std::string>& names,
                                                 const std::string& what) const {
  check_distinct(names);
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

bool Evaluation::names_class(const std::string& name, const std::int64_t target) const {
  return class_of(prepared_.classes, name) == target;
}

void Evaluation::count(const std::vector<std::int64_t>& targets, const at::Tensor& batch) {
  const at::Tensor logits = batch.to(at::kCPU);
  check_finite(logits, *prepared_.model);
  const at::Tensor best = std::get<1>(logits.topk(std::min<std::int64_t>(5, logits.size(1)), 1)).contiguous();
  const auto width = static_cast<std::size_t>(best.size(1));
  const std::span<const std::int64_t> all(best.const_data_ptr<std::int64_t>(), targets.size() * width);
  for (std::size_t row = 0; row < targets.size(); ++row)
    counts_.add(targets[row], all.subspan(row * width, width));
}

void Evaluation::count_numbers(const std::vector<double>& labels, const at::Tensor& batch) {
  const at::Tensor numbers = batch.select(1, 0).to(at::kCPU, at::kDouble).contiguous();
  check_finite(numbers, *prepared_.model);
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  predicted_.insert(predicted_.end(), numbers.const_data_ptr<double>(),
                    numbers.const_data_ptr<double>() + numbers.numel());
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
  if (counts_.items == 0 && labels_.empty())
    throw Error(request_.data.string(), "none of its pictures can be read", "name another folder");
  outcome.items = counts_.items;
  outcome.classes = static_cast<std::int64_t>(prepared_.classes.size());
  outcome.top1 = top1(counts_);
  outcome.top5 = top5(counts_);
  outcome.constant_answer = constant_answer(counts_);
  if (!labels_.empty()) {
    outcome.items = std::ssize(labels_);
    outcome.pearson = pearson_correlation(predicted_, labels_);
    outcome.spearman = spearman_correlation(predicted_, labels_);
    double squares = 0;
    for (std::size_t i = 0; i < labels_.size(); ++i) squares += std::pow(predicted_[i] - labels_[i], 2);
    outcome.squared_error = squares / static_cast<double>(labels_.size());
  } else if (prepared_.model->info().input == InputKind::text) {
    outcome.matthews = matthews_correlation(counts_);
    const bool two = prepared_.classes.size() == 2;
    outcome.f1 = two ? f1_of_class(counts_, 1) : f1_macro(counts_);
    outcome.f1_of = two ? fmt::format("class 1 ({})", prepared_.classes[1].label) : std::string("macro");
  }
  outcome.model_hash = prepared_.model_hash;
  for (const AppliedAdapter& adapter : prepared_.adapters) outcome.adapters.push_back(adapter.info);
  outcome.notes = notes_;
  return outcome;
}

namespace {

std::vector<std::int64_t> targets_of(const Evaluation& evaluation, const std::vector<LabelledText>& texts) {
  std::map<std::string, std::int64_t> classes; // each label is looked up, and reported if unknown, once
  for (const LabelledText& text : texts) classes.emplace(text.label, 0);
  std::vector<std::string> labels;
  for (const auto& [label, index] : classes) labels.push_back(label);
  const std::vector<std::int64_t> matched = evaluation.classes_of(labels, "labels");
  for (std::size_t i = 0; i < labels.size(); ++i) classes[labels[i]] = matched[i];
  std::vector<std::int64_t> targets;
  for (const LabelledText& text : texts) targets.push_back(classes[text.label]);
  return targets;
}

} // namespace

EvaluateOutcome evaluate_texts(Evaluation& evaluation) {
  const EvaluateRequest& request = evaluation.request();
  const PreparedModel& prepared = evaluation.prepared();
  const auto texts = read_labelled_texts(request.data, request.columns, request.header, request.limit);
  const bool numbers = predicts_number(prepared.model->info());
  const auto labels = numbers ? label_numbers(texts, request.data) : std::vector<double>();
  const auto targets = numbers ? std::vector<std::int64_t>() : targets_of(evaluation, texts);
  std::vector<ModelInput> inputs;
  std::int64_t cut = 0;
  for (const LabelledText& text : texts) {
    inputs.push_back(prepared.model->prepare_text(text.text, text.pair));
    cut += inputs.back().note.empty() ? 0 : 1;
  }
  if (cut > 0)
    evaluation.note(fmt::format("{} of {} texts were cut at {} tokens", cut, texts.size(),
                                prepared.model->info().max_tokens));
  // Batches of texts of similar length need little padding.
  std::vector<std::size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](const std::size_t i) { return inputs[i].token_ids.size(1); });
  ClassPlan plan;
  plan.classes = prepared.classes;
  const RunnableModel model = runnable(prepared, {}, plan);
  const auto batch = static_cast<std::size_t>(std::max(1, request.batch));
  for (std::size_t first = 0; first < order.size(); first += batch) {
    const std::size_t end = std::min(order.size(), first + batch);
    std::vector<const ModelInput*> some;
    for (std::size_t i = first; i < end; ++i) some.push_back(&inputs[order[i]]);
    const at::Tensor logits = model.logits({}, placed(*prepared.model, padded_batch(some)), 0);
    const auto of_batch = [&](const auto& all) {
      std::remove_cvref_t<decltype(all)> part;
      for (std::size_t i = first; i < end; ++i) part.push_back(all[order[i]]);
      return part;
    };
    if (numbers)
      evaluation.count_numbers(of_batch(labels), logits);
    else
      evaluation.count(of_batch(targets), logits);
    evaluation.progress(static_cast<std::int64_t>(end), static_cast<std::int64_t>(order.size()));
  }
  return evaluation.outcome();
}

} // namespace hydrascope::training

namespace hydrascope {
namespace training {
namespace {

// All images, or `limit` of them taken evenly, as they may be sorted by class.
std::vector<LabelledImage> some_of(std::vector<LabelledImage> images, const int limit) {
  const std::size_t count = limit > 0 ? static_cast<std::size_t>(limit) : images.size();
  if (count >= images.size()) return images;
  std::vector<LabelledImage> some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(std::move(images[i * images.size() / count]));
  return some;
}

} // namespace

std::vector<LabelledImage> labelled_pictures(const Evaluation& evaluation) {
  const EvaluateRequest& request = evaluation.request();
  const auto folders = request.classes.empty() ? class_folders(request.data) : request.classes;
  const auto targets = evaluation.classes_of(folders, "sub-folders");
  ImageFolder pictures = list_image_folder(request.data, folders, request.images_per_class);
  for (auto& image : pictures.images) image.label = targets[static_cast<std::size_t>(image.label)];
  return some_of(std::move(pictures.images), request.limit);
}

EvaluateOutcome evaluate_pictures(Evaluation& evaluation) {
  const EvaluateRequest& request = evaluation.request();
  const PreparedModel& prepared = evaluation.prepared();
  const std::vector<LabelledImage> pictures = labelled_pictures(evaluation);
  ClassPlan plan;
  plan.classes = prepared.classes;
  const RunnableModel model = runnable(prepared, {}, plan);
  const int size = request.execution.image_size.value_or(prepared.image_size);
  ModelInput input;
  std::vector<at::Tensor> pixels;
  std::vector<std::int64_t> targets;
  const auto flush = [&] {
    if (pixels.empty()) return;
    input.pixels = at::cat(pixels);
    evaluation.count(targets, model.logits({}, placed(*prepared.model, input), 0));
    pixels.clear();
    targets.clear();
  };
  const auto count = static_cast<std::int64_t>(pictures.size());
  std::int64_t done = 0;
  for (const LabelledImage& picture : pictures) {
    try {
      ModelInput one = prepare_picture(*prepared.model, load_image(picture.file), size);
      if (!pixels.empty() && pixels.front().sizes() != one.pixels.sizes()) flush();
      pixels.push_back(one.pixels);
      targets.push_back(picture.label);
      input = std::move(one);
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      evaluation.note(fmt::format("skipped {}", error.what()));
    }
    ++done;
    if (static_cast<int>(pixels.size()) >= request.batch || done == count) flush();
    evaluation.progress(done, count);
  }
  return evaluation.outcome();
}

} // namespace training

EvaluateOutcome evaluate(const EvaluateRequest& request, const TrainingObserver& observer,
                         const std::stop_token& stop, const std::shared_ptr<ModelStore>& models) {
  return evaluate_in(placement_of(request.execution), request, observer, stop, models);
}

EvaluateOutcome evaluate_in(const Placement& placement, const EvaluateRequest& request,
                            const TrainingObserver& observer, const std::stop_token& stop,
                            const std::shared_ptr<ModelStore>& models) {
  return training::with_errors_of("evaluate", placement.device_name(), [&] {
    const at::NoGradGuard no_gradients;
    const ThreadCount threads(request.execution.threads);
    training::Evaluation evaluation(placement, request, observer, stop, models);
    const bool text = evaluation.prepared().model->info().input == InputKind::text;
    if (text && !request.boxes.empty())
      throw UsageError("--boxes", "are for pictures, and the model takes text", "leave the option out");
    if (text && request.curve_steps > 0)
      throw UsageError("--curves", "is for pictures, and the model takes text", "leave the option out");
    if (!request.boxes.empty() || request.curve_steps > 0)
      return evaluate_maps(evaluation); // its runs handle the dtype
    const training::Autocast autocast(c10::kCPU,
                                      training::autocasts(placement) ? placement.dtype : c10::kFloat);
    return text ? evaluate_texts(evaluation) : evaluate_pictures(evaluation);
  });
}

} // namespace hydrascope
