#include "engine/runtime/run_result.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <ATen/ops/softmax.h>

#include "engine/runtime/tensor_array.h"

namespace hydrascope {
namespace {

HeadTable table_of(const char* name, const FactReading& reading, std::vector<float> LayerFacts::*member) {
  HeadTable table;
  table.name = name;
  for (const LayerFacts& facts : reading.facts) {
    const std::vector<float>& row = facts.*member;
    table.values.values.insert(table.values.values.end(), row.begin(), row.end());
    if (member == &LayerFacts::kl) table.clamped_share += facts.clamped_share;
  }
  const auto layers = static_cast<std::int64_t>(reading.facts.size());
  const auto count = static_cast<std::int64_t>(table.values.values.size());
  const std::int64_t per_layer = layers == 0 ? 0 : count / layers;
  table.values.shape = {layers, per_layer};
  if (member == &LayerFacts::change) table.values.shape = {layers, per_layer / 3, 3};
  if (layers > 0) table.clamped_share /= static_cast<double>(layers);
  return table;
}

void collect(std::vector<const LayerKernel*>& kernels, const Readings& readings) {
  for (const WeightsReading& reading : readings.weights)
    for (const LayerKernel& kernel : reading.kernels) kernels.push_back(&kernel);
  for (const VectorsReading& reading : readings.vectors)
    for (const LayerKernel& kernel : reading.kernels) kernels.push_back(&kernel);
  for (const TileReading& reading : readings.tiles) kernels.push_back(&reading.kernel);
  for (const FactReading& reading : readings.facts)
    for (const LayerKernel& kernel : reading.kernels) kernels.push_back(&kernel);
}

// What both passes delivered, in the order it was asked for.
template <typename Result>
std::vector<Result> in_order(RunPlan& plan, std::map<std::size_t, std::vector<Result>> Readings::*member) {
  auto delivered = std::move(plan.own.readings.*member);
  if (plan.teacher) delivered.merge(plan.teacher->readings.*member);
  std::vector<Result> ordered;
  for (auto& [position, results] : delivered)
    ordered.insert(ordered.end(), std::make_move_iterator(results.begin()),
                   std::make_move_iterator(results.end()));
  return ordered;
}

} // namespace

std::vector<Prediction> predictions_of(const at::Tensor& logits, const ModelInfo& model) {
  const at::Tensor values = logits.detach().select(0, 0).to(at::kCPU, at::kDouble);
  const at::Tensor shares = at::softmax(values, 0);
  std::vector<Prediction> predictions;
  for (std::int64_t i = 0; i < values.size(0); ++i) {
    Prediction prediction;
    prediction.index = static_cast<int>(i);
    prediction.label = class_label(model, i);
    prediction.logit = values[i].item<double>();
    prediction.probability = shares[i].item<double>();
    predictions.push_back(std::move(prediction));
  }
  std::stable_sort(predictions.begin(), predictions.end(),
                   [](const Prediction& a, const Prediction& b) { return a.logit > b.logit; });
  return predictions;
}

std::vector<LayerRun> layer_runs(const Pass& pass, const std::vector<PassBlock>& blocks) {
  std::vector<LayerRun> runs;
  const bool image = pass.model.model->info().input == InputKind::image;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const LayerKernel& layer = pass.layers[i];
    const KernelInfo& info = layer.kernel->info();
    const AdapterInfo* trained = pass.model.trained(static_cast<int>(i), layer.kernel->spec());
    LayerRun run;
    run.kernel = layer.kernel->spec();
    run.path = blocks[i].path;
    run.seconds = blocks[i].seconds;
    run.cached = !blocks[i].ran;
    run.differentiable = blocks[i].ran && static_cast<int>(i) >= pass.first_gradient_layer;
    run.zero_denominators = blocks[i].zero_denominators;
    run.untrained = !info.exact_softmax && !trained && !layer.own_parameters;
    // Only sums over tokens grow with their number; a normalised kernel has no resolution of its own.
    run.other_resolution =
        image && trained && !info.normalised && trained->tokens > 0 && trained->tokens != pass.input.tokens;
    runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<AdapterInfo> adapters_used(const RunPlan& plan) {
  std::vector<const LayerKernel*> kernels;
  for (const LayerKernel& kernel : plan.own.pass.layers) kernels.push_back(&kernel);
  collect(kernels, plan.own.readings);
  if (plan.teacher) collect(kernels, plan.teacher->readings);
  std::vector<AdapterInfo> used;
  for (const AppliedAdapter& adapter : plan.own.pass.model.adapters) {
    const auto& layers = adapter.info.layers;
    const bool serves = std::any_of(layers.begin(), layers.end(), [&](const AdapterInfo::Layer& layer) {
      return std::any_of(kernels.begin(), kernels.end(),
                         [&](const LayerKernel* kernel) { return kernel->kernel->spec() == layer.kernel; });
    });
    if (adapter.for_schedule || serves) used.push_back(adapter.info);
  }
  return used;
}

std::vector<HeadTable> in_place_tables(const RunPlan& plan, const Asks& asks) {
  std::vector<HeadTable> tables;
  for (const FactReading& reading : plan.own.readings.facts) {
    if (asks.entropy) tables.push_back(table_of("entropy", reading, &LayerFacts::entropy));
    if (asks.kl) tables.push_back(table_of("kl", reading, &LayerFacts::kl));
    if (asks.monotonicity) tables.push_back(table_of("monotonicity", reading, &LayerFacts::spearman));
  }
  return tables;
}

Array in_place_change(const RunPlan& plan) {
  return table_of("change", plan.own.readings.facts.front(), &LayerFacts::change).values;
}

std::vector<HeadTable> teacher_forced_tables(const PlannedPass& teacher) {
  std::vector<HeadTable> tables;
  for (const FactReading& reading : teacher.readings.facts) {
    const bool untrained = std::any_of(
        reading.kernels.begin(), reading.kernels.end(),
        [](const LayerKernel& kernel) { return kernel.kernel->info().trainable && !kernel.own_parameters; });
    std::vector<HeadTable> read;
    if (reading.kinds.entropy) read.push_back(table_of("entropy", reading, &LayerFacts::entropy));
    if (reading.kinds.kl) read.push_back(table_of("kl", reading, &LayerFacts::kl));
    if (reading.kinds.change) read.push_back(table_of("change", reading, &LayerFacts::change));
    if (reading.kinds.spearman) read.push_back(table_of("monotonicity", reading, &LayerFacts::spearman));
    for (HeadTable& table : read) {
      table.kernel = reading.kernels.front().kernel->spec();
      table.in_place = false;
      table.untrained = untrained;
      tables.push_back(std::move(table));
    }
  }
  return tables;
}

std::vector<WeightsResult> weights_in_order(RunPlan& plan) { return in_order(plan, &Readings::delivered); }
std::vector<VectorsResult> vectors_in_order(RunPlan& plan) {
  return in_order(plan, &Readings::delivered_vectors);
}
std::vector<TileResult> tiles_in_order(RunPlan& plan) { return in_order(plan, &Readings::delivered_tiles); }

void add_gradients(Readings& readings, const std::map<int, at::Tensor>& gradient_of) {
  for (const VectorsReading& reading : readings.vectors) {
    const auto gradient = gradient_of.find(reading.ask.layer);
    if (!reading.ask.gradient || gradient == gradient_of.end()) continue;
    for (VectorsResult& vectors : readings.delivered_vectors[reading.position]) {
      if (!vectors.global.empty())
        vectors.gradient = to_array(gradient->second.select(0, 0).select(1, vectors.query).flatten());
    }
  }
}

} // namespace hydrascope
