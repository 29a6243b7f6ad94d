#include "engine/run/run_result.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <ATen/ops/softmax.h>

#include "engine/run/tensor_array.h"

namespace hydrascope {
namespace {

void collect(std::vector<const LayerKernel*>& kernels, const Readings& readings) {
  for (const WeightsReading& reading : readings.weights)
    for (const LayerKernel& kernel : reading.kernels) kernels.push_back(&kernel);
  for (const VectorsReading& reading : readings.vectors)
    for (const LayerKernel& kernel : reading.kernels) kernels.push_back(&kernel);
  for (const TileReading& reading : readings.tiles) kernels.push_back(&reading.kernel);
  for (const HeadTableReading& reading : readings.head_tables)
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

std::vector<HeadTable> head_tables(const RunPlan& plan, std::span<const HeadTableAsk> asks) {
  const std::vector<KernelSpec> kernels = kernels_asked(asks);
  std::vector<HeadTable> tables;
  for (const HeadTableAsk& ask : asks) {
    if (!ask.kernel) {
      tables.push_back(plan.own.readings.head_tables.front().table(ask));
      continue;
    }
    const auto position = std::ranges::find(kernels, *ask.kernel) - kernels.begin();
    tables.push_back(plan.teacher->readings.head_tables[static_cast<std::size_t>(position)].table(ask));
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
