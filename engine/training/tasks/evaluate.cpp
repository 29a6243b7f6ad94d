#include "engine/training/tasks/evaluate.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/run/execution.h"
#include "engine/training/loop/autocast.h"
#include "engine/training/loop/trained_parameters.h"
#include "engine/training/tasks/evaluation.h"

namespace hydrascope {
namespace training {
namespace {

// `count` items, or `limit` of them taken evenly: they may be sorted by class.
std::vector<LabelledImage> some_of(std::vector<LabelledImage> images, const int limit) {
  const std::size_t wanted = limit > 0 ? static_cast<std::size_t>(limit) : images.size();
  if (wanted >= images.size()) return images;
  std::vector<LabelledImage> some;
  for (std::size_t i = 0; i < wanted; ++i) some.push_back(std::move(images[i * images.size() / wanted]));
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
  const int size = request.execution.image_size.value_or(prepared.model->info().image_size);
  ModelInput input;
  std::vector<at::Tensor> pixels;
  std::vector<std::int64_t> targets;
  const auto flush = [&] {
    if (pixels.empty()) return;
    input.pixels = at::cat(pixels);
    evaluation.count(targets, model.logits({}, input, 0));
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
  try {
    const at::NoGradGuard no_gradients;
    const ThreadCount threads(request.execution.threads);
    training::Evaluation evaluation(request, observer, stop, models);
    const bool text = evaluation.prepared().model->info().input == InputKind::text;
    if (text && !request.boxes.empty())
      throw UsageError("--boxes", "are for pictures, and the model takes text", "leave the option out");
    if (!request.boxes.empty()) return evaluate_pointing(evaluation); // its runs see to the dtype themselves
    const training::Autocast autocast(training::use_bfloat16(request.execution.dtype));
    return text ? evaluate_texts(evaluation) : evaluate_pictures(evaluation);
  } catch (const c10::Error& error) {
    throw Error("evaluate", error.what_without_backtrace(), "report this with the command");
  }
}

} // namespace hydrascope
