#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/training/data/data_hash.h"
#include "engine/training/loop/autocast.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/loop/option_fields.h"
#include "engine/training/loop/options.h"
#include "engine/training/loop/trained_parameters.h"
#include "engine/training/tasks/finetuning.h"

namespace hydrascope {
namespace training {
namespace {

// By default the layers that the schedule replaces, of a decoder without any all: it has no new head to
// learn. Throws UsageError for parts that the model does not have or that do not fit the other options.
TrainedParts checked_parts(const FinetuneRequest& request, const PreparedModel& prepared) {
  const Schedule& schedule = prepared.schedule;
  TrainedParts parts;
  if (request.trained || !prepared.model->info().causal) {
    parts = parts_to_train(request.trained, schedule);
  } else {
    parts.head = false;
    for (std::size_t layer = 0; layer < schedule.layers.size(); ++layer)
      if (schedule.all_exact_softmax() || !kernel_info(schedule.layers[layer]).exact_softmax)
        parts.layers.push_back(static_cast<int>(layer));
  }
  check_low_rank(request.low_rank, parts);
  if (request.patch_dropout > 0)
    for (const KernelSpec& kernel : schedule.layers)
      if (kernel_info(kernel).positional)
        throw UsageError("--patch-dropout",
                         fmt::format("the weights of {} depend on the tokens' positions", kernel.name),
                         "leave it out, or choose another kernel");
  return parts;
}

// Options that some objectives alone have.
void check_options(const FinetuneRequest& request, const Objective objective) {
  const OptionValues values = option_values(request), defaults = option_values(FinetuneRequest{});
  for (const TrainingOption& option : training_options())
    if (option.applies(TrainingKind::finetune) && !option.is_of(objective) &&
        values.value(option.key) != defaults.value(option.key))
      throw UsageError(option.name(), fmt::format("is not for --objective {}", objective_text(objective)),
                       "leave it out");
}

} // namespace

FinetuneTask::FinetuneTask(const FinetuneRequest& request, std::stop_token stop, ModelStore& models)
    : request_(request),
      settings_(request.settings),
      stop_(std::move(stop)),
      threads_(settings_.execution.threads),
      placement_(training_placement(settings_.execution)),
      products_(product_type(settings_.execution.dtype, placement_.device)),
      prepared_(prepare_model(models, settings_.model_folder, settings_.adapters, request.schedule,
                              placement_, true)),
      parts_(checked_parts(request, prepared_)),
      first_(first_trained(parts_, prepared_.model->info().layers)),
      data_hash_(data_hash(request.data)) {}

double FinetuneTask::learning_rate(const std::int64_t step, const std::int64_t total) const {
  const auto warmup = std::llround(request_.warmup * static_cast<double>(total));
  return warmup_cosine(settings_.learning_rate, step, std::max(1LL, warmup), total);
}

NamedTensors FinetuneTask::weights_of(NamedTensors parameters) const {
  if (!request_.low_rank) return parameters;
  return with_updates(*prepared_.model, parameters, *request_.low_rank);
}

NamedTensors FinetuneTask::with_given_maps(NamedTensors tensors) const {
  NamedTensors maps = given_maps(prepared_);
  tensors.merge(maps); // keeps those that were trained
  return tensors;
}

NamedTensors FinetuneTask::constant_weights() const {
  NamedTensors values;
  for (const auto& [name, value] : leaves_) values[name] = value.detach().clone();
  values = weights_of(std::move(values));
  for (auto& [name, value] : matrices_in(products_, values)) values[name] = std::move(value);
  return values;
}

RunnableModel FinetuneTask::runnable_with(const NamedTensors& parameters, const ClassPlan& plan) const {
  return runnable(prepared_, weights_of(parameters), plan);
}

// Several processes stop together, after a step.
void FinetuneTask::visit_held_out(const std::int64_t count, const ItemLength& length,
                                  const std::function<void(const Items& batch)>& work) const {
  Items all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  for (const Items& batch : cut_by_length(std::move(all), settings_.batch, length)) {
    if (settings_.group == nullptr && stop_.stop_requested()) return;
    work(batch);
  }
}

std::string FinetuneTask::model_text() const {
  const Schedule& schedule = prepared_.schedule;
  const bool uniform = std::ranges::all_of(
      schedule.layers, [&](const KernelSpec& kernel) { return kernel == schedule.layers.front(); });
  // Not labels, which leave out the source of a typed kernel.
  const std::string kernels =
      uniform ? fmt::format("{} ×{}", schedule.layers.front().text(), schedule.layers.size())
              : written_text(schedule).layers.front();
  // A new model's folder has a temporary name, which is another one when training is resumed where another
  // process has the first, or on a file system without locks.
  std::string text =
      fmt::format("{} over {}, {}, {}", request_.whole_model ? "a new model" : prepared_.model->info().name,
                  hashes_text(prepared_), kernels, text_of(parts_));
  if (request_.low_rank)
    text +=
        fmt::format(" by updates of rank {}, alpha {}", request_.low_rank->rank, request_.low_rank->alpha);
  return text;
}

std::string FinetuneTask::steps_text() const {
  return fmt::format(
      "{} epochs, batch {} in {} parts, warm-up {}, weight decay {}, label smoothing {}, seed {}, {}",
      settings_.epochs, settings_.batch, settings_.accumulate, request_.warmup, request_.weight_decay,
      request_.label_smoothing, settings_.execution.seed, Placement{.dtype = products_}.dtype_name());
}

AdapterRecord FinetuneTask::record_of(const NamedTensors& stored, const std::string& data,
                                      const Checkpoint& state, const HeldOut& held_out) const {
  AdapterRecord record;
  record.role = prepared_.schedule.all_exact_softmax() ? "tail" : "schedule";
  record.base = base_of(prepared_, record.role, stored);
  for (int layer = 0; layer < prepared_.model->info().layers; ++layer) {
    const KernelSpec& spec = prepared_.schedule.layers[static_cast<std::size_t>(layer)];
    const bool trained = std::ranges::find(parts_.layers, layer) != parts_.layers.end() ||
                         std::ranges::find(parts_.attention, layer) != parts_.attention.end();
    if (trained || !kernel_info(spec).exact_softmax) record.layers.push_back({layer, spec});
  }
  record.command = settings_.command;
  record.data = data;
  record.data_hash = data_hash_;
  record.steps = held_out.step;
  record.loss = state.epoch_loss;
  return record;
}

std::unique_ptr<FinetuneTask> make_finetuning(const FinetuneRequest& request,
                                              const TrainingObserver& observer, const std::stop_token& stop,
                                              ModelStore& models) {
  const auto base = models.base(request.settings.model_folder);
  const ModelInfo& model = base->info();
  const Objective objective = objective_for(request.objective, model);
  const bool predicts = objective == Objective::next_token;
  if (predicts && !model.causal)
    throw UsageError("--objective next-token", fmt::format("{} predicts no next token", model.name),
                     "name a decoder with --model, such as smollm2");
  if (!predicts && model.causal)
    throw UsageError("--objective " + objective_text(objective),
                     fmt::format("{} is a decoder, which has no classifier", model.name),
                     "leave it out, or name another --model");
  if (objective == Objective::regression && model.input != InputKind::text)
    throw UsageError("--objective regression", fmt::format("the model {} takes pictures", model.name),
                     "leave it out, or name a text model with --model");
  check_options(request, objective);
  if (predicts) return make_next_token_tuning(request, stop, models);
  return objective == Objective::regression ? make_regression(request, observer, stop, models)
                                            : make_classification(request, observer, stop, models);
}

} // namespace training

Objective objective_for(const Objective asked, const ModelInfo& model) {
  if (asked != Objective::by_model) return asked;
  return model.causal ? Objective::next_token : Objective::classification;
}

FinetuneRequest next_token_request() {
  FinetuneRequest request;
  request.settings.epochs = 2;
  request.settings.batch = 8;
  request.settings.learning_rate = 1e-4;
  request.weight_decay = 0.01;
  request.label_smoothing = 0;
  return request;
}

TrainingOutcome finetune(const FinetuneRequest& request, const TrainingObserver& observer,
                         const std::stop_token& stop, const std::shared_ptr<ModelStore>& models) {
  return training::with_errors_of("finetune", request.settings.execution.device, [&] {
    training::check_settings(request.settings);
    const auto task = training::make_finetuning(request, observer, stop, *models);
    if (!task->stopped())
      return training::run_training(*task, request.settings, task->notes(), observer, stop);
    TrainingOutcome outcome;
    outcome.stopped = true;
    return outcome;
  });
}

} // namespace hydrascope
