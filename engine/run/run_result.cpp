#include "engine/run/run_result.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/softmax.h>

namespace hydrascope {

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
  for (const LayerKernel& kernel : plan.own.layers) kernels.push_back(&kernel);
  for (const auto& reading : plan.readings) reading->add_kernels(kernels);
  std::vector<AdapterInfo> used;
  for (const AppliedAdapter& adapter : plan.own.model.adapters) {
    const auto& layers = adapter.info.layers;
    const bool serves = std::any_of(layers.begin(), layers.end(), [&](const AdapterInfo::Layer& layer) {
      return std::any_of(kernels.begin(), kernels.end(),
                         [&](const LayerKernel* kernel) { return kernel->kernel->spec() == layer.kernel; });
    });
    if (adapter.for_schedule || serves) used.push_back(adapter.info);
  }
  return used;
}

} // namespace hydrascope
