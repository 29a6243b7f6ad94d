#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/training/loop/autocast.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/loop/option_fields.h"
#include "engine/training/loop/trained_parameters.h"
#include "engine/training/tasks/finetuning.h"

namespace hydrascope {
namespace training {

FinetuneTask::FinetuneTask(const FinetuneRequest& request, std::stop_token stop, ModelStore& models)
    : request_(request),
      settings_(request.settings),
      stop_(std::move(stop)),
      threads_(settings_.execution.threads),
      placement_(training_placement(settings_.execution)),
      products_(product_type(settings_.execution.dtype, placement_.device)),
      prepared_(prepare_model(models, settings_.model_folder, settings_.adapters, request.schedule,
                              placement_, true)) {}

double FinetuneTask::learning_rate(const std::int64_t step, const std::int64_t total) const {
  const auto warmup = std::llround(request_.warmup * static_cast<double>(total));
  return warmup_cosine(settings_.learning_rate, step, std::max(1LL, warmup), total);
}

NamedTensors FinetuneTask::weights_of(NamedTensors parameters) const {
  if (!request_.low_rank) return parameters;
  return with_updates(*prepared_.model, parameters, *request_.low_rank);
}

NamedTensors FinetuneTask::constant_weights() const {
  NamedTensors values;
  for (const auto& [name, value] : leaves_) values[name] = value.detach().clone();
  values = weights_of(std::move(values));
  for (auto& [name, value] : matrices_in(products_, values)) values[name] = std::move(value);
  return values;
}

std::string FinetuneTask::low_rank_text() const {
  if (!request_.low_rank) return "";
  return fmt::format(" by updates of rank {}, alpha {}", request_.low_rank->rank, request_.low_rank->alpha);
}

std::unique_ptr<FinetuneTask> make_finetuning(const FinetuneRequest& request,
                                              const TrainingObserver& observer, const std::stop_token& stop,
                                              ModelStore& models) {
  const ModelInfo& model = models.base(request.settings.model_folder)->info();
  const Objective objective = objective_for(request.objective, model);
  const bool predicts = objective == Objective::next_token;
  if (predicts && !model.causal)
    throw UsageError("--objective next-token", fmt::format("{} predicts no next token", model.name),
                     "name a decoder with --model, as smollm2");
  if (!predicts && model.causal)
    throw UsageError("--objective " + objective_text(objective),
                     fmt::format("{} is a decoder, which has no classifier", model.name),
                     "leave it out, or name another --model");
  if (predicts) return make_next_token_tuning(request, stop, models);
  return objective == Objective::regression ? make_regression(request, observer, stop, models)
                                            : make_classification(request, observer, stop, models);
}

AdapterRecord record_of(const PreparedModel& prepared, const TrainedParts& parts, const NamedTensors& stored,
                        const std::string& command) {
  AdapterRecord record;
  record.role = prepared.schedule.all_exact_softmax() ? "tail" : "schedule";
  record.base = base_without_replaced(prepared, record.role, stored);
  for (int layer = 0; layer < prepared.model->info().layers; ++layer) {
    const KernelSpec& spec = prepared.schedule.layers[static_cast<std::size_t>(layer)];
    const bool trained = std::ranges::find(parts.layers, layer) != parts.layers.end() ||
                         std::ranges::find(parts.attention, layer) != parts.attention.end();
    if (trained || !kernel_info(spec).exact_softmax) record.layers.push_back({layer, spec});
  }
  record.command = command;
  return record;
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
