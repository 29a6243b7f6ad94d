#include "engine/run/decoding_run.h"

#include <ATen/core/grad_mode.h>

#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"

namespace hydrascope {

DecodingRun::DecodingRun(const AppliedModel& model, const std::vector<KernelSpec>& kernels,
                         const Placement& placement, const std::int64_t tokens) {
  const ModelInfo& info = model.model->info();
  if (!info.causal)
    throw UsageError(info.name, "writes no text", "name a decoder with --model, such as smollm2");
  pass_ = plain_pass(model.model, layer_kernels(*model.model, kernels));
  pass_.observed = false;
  const AttentionShape shape{.heads = info.heads,
                             .tokens = tokens,
                             .head_width = info.width / info.heads,
                             .dtype = placement.dtype,
                             .device = placement.device.type(),
                             .device_index = placement.device.index(),
                             .has_layer_input = true,
                             .causal = true,
                             .key_heads = info.key_heads < info.heads ? info.key_heads : 0};
  for (const LayerKernel& layer : pass_.layers)
    pass_.states.push_back(layer.kernel->decoding(shape, layer.parameters));
}

at::Tensor DecodingRun::read(const at::Tensor& ids, const std::stop_token& stop) {
  const at::NoGradGuard no_gradients;
  ModelInput input;
  input.token_ids = ids;
  input.first_position = tokens_;
  pass_.input.input = placed(model(), std::move(input));
  const at::Tensor hidden = run_pass(pass_, stop).output;
  tokens_ += ids.size(1);
  return row_to(model().logits(hidden.narrow(1, ids.size(1) - 1, 1), {}).flatten(), at::kFloat);
}

std::int64_t DecodingRun::state_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& state : pass_.states) bytes += state->bytes();
  return bytes;
}

} // namespace hydrascope
