#include "engine/training/evaluate.h"

#include <algorithm>
#include <chrono>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/plain/error.h"
#include "engine/runtime/execution.h"
#include "engine/training/class_plan.h"
#include "engine/training/image_folder.h"
#include "engine/training/trained_parameters.h"

namespace hydrascope {
namespace training {
namespace {

struct Counter {
  std::int64_t items = 0, first = 0, among_five = 0;

  void add(const at::Tensor& logits, const std::vector<std::int64_t>& targets) {
    const at::Tensor best =
        std::get<1>(logits.topk(std::min<std::int64_t>(5, logits.size(1)), 1)).contiguous();
    const std::int64_t* index = best.const_data_ptr<std::int64_t>();
    for (std::size_t row = 0; row < targets.size(); ++row, index += best.size(1)) {
      ++items;
      first += index[0] == targets[row] ? 1 : 0;
      among_five += std::find(index, index + best.size(1), targets[row]) != index + best.size(1) ? 1 : 0;
    }
  }
};

// The class of each sub-folder. Throws UsageError listing all that match none.
std::vector<std::int64_t> match_all(const std::vector<AdapterInfo::Class>& classes,
                                    const std::vector<std::string>& folders) {
  std::vector<std::int64_t> targets;
  std::vector<std::string> unknown;
  for (const auto& folder : folders) {
    targets.push_back(matching_class(classes, folder));
    if (targets.back() < 0) unknown.push_back(folder);
  }
  if (!unknown.empty())
    throw UsageError("--data",
                     fmt::format("these sub-folders are no class of the model: {}", fmt::join(unknown, ", ")),
                     "name a folder whose sub-folders are ids or labels of the model");
  return targets;
}

EvaluateOutcome evaluate_folder(const EvaluateRequest& request, const TrainingObserver& observer,
                                const std::stop_token& stop) {
  const at::NoGradGuard no_gradients;
  const ThreadCount threads(request.execution.threads);
  const PreparedModel prepared =
      prepare_model(request.model_folder, request.adapters, request.schedule, request.execution, false);
  const auto& info = prepared.model->info();
  if (info.input != InputKind::image)
    throw UsageError("--model", "evaluate takes a model for images", "choose one, such as vit-small");
  if (prepared.classes.empty())
    throw UsageError("--model", "has no classifier", "apply an adapter that brings one with --adapter");
  const auto folders = request.classes.empty() ? class_folders(request.data) : request.classes;
  const auto targets = match_all(prepared.classes, folders);
  const ImageFolder pictures = list_image_folder(request.data, folders, request.images_per_class);
  ClassPlan plan;
  plan.classes = prepared.classes;
  const RunnableModel model = runnable(prepared, {}, plan);
  const int size = request.execution.image_size.value_or(info.image_size);

  EvaluateOutcome outcome;
  outcome.model_hash = prepared.model_hash;
  outcome.adapters = prepared.adapters;
  Counter counter;
  const auto count = static_cast<std::int64_t>(pictures.images.size());
  const auto begin = std::chrono::steady_clock::now();
  ModelInput input;
  std::vector<at::Tensor> pixels;
  std::vector<std::int64_t> wanted;
  const auto flush = [&] {
    if (pixels.empty()) return;
    input.pixels = at::cat(pixels);
    counter.add(model.logits(prepared.model->embed(input), input, 0), wanted);
    pixels.clear();
    wanted.clear();
  };
  for (std::int64_t i = 0; i < count; ++i) {
    if (stop.stop_requested()) throw Cancelled();
    const LabelledImage& picture = pictures.images[static_cast<std::size_t>(i)];
    TrainingProgress progress;
    try {
      ModelInput one = prepare_picture(*prepared.model, load_image(picture.file), size);
      if (!pixels.empty() && pixels.front().sizes() != one.pixels.sizes()) flush();
      pixels.push_back(one.pixels);
      wanted.push_back(targets[static_cast<std::size_t>(picture.label)]);
      input = std::move(one);
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      outcome.notes.push_back(fmt::format("skipped {}", error.what()));
      progress.note = outcome.notes.back();
    }
    if (static_cast<int>(pixels.size()) >= request.batch) flush();
    if (!observer) continue;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    progress.phase = "validate";
    progress.step = i + 1;
    progress.steps = count;
    progress.items_per_second = static_cast<double>(i + 1) / std::max(1e-9, seconds.count());
    progress.held_out.accuracy =
        static_cast<double>(counter.first) / static_cast<double>(std::max<std::int64_t>(1, counter.items));
    observer(progress);
  }
  flush();
  if (counter.items == 0) throw Error(request.data.string(), "none of its pictures can be read");
  outcome.items = counter.items;
  outcome.top1 = static_cast<double>(counter.first) / static_cast<double>(counter.items);
  outcome.top5 = static_cast<double>(counter.among_five) / static_cast<double>(counter.items);
  return outcome;
}

} // namespace
} // namespace training

EvaluateOutcome evaluate(const EvaluateRequest& request, const TrainingObserver& observer,
                         const std::stop_token& stop) {
  try {
    return training::evaluate_folder(request, observer, stop);
  } catch (const c10::Error& error) {
    throw Error("evaluate", error.what_without_backtrace(), "report this with the command");
  }
}

} // namespace hydrascope
