#include "engine/attention/cuda_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <torch/csrc/autograd/custom_function.h>

#include "engine/attention/cuda/plugin.h"
#include "engine/attention/cuda_plugin.h"
#include "engine/attention/tokens.h"

namespace hydrascope {
namespace {

using torch::autograd::AutogradContext, torch::autograd::variable_list;

void no_second_derivatives() {
  TORCH_CHECK(!at::GradMode::is_enabled(), "fused attention on the GPU has no second derivatives");
}

class FusedHydra : public torch::autograd::Function<FusedHydra> {
public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const at::Tensor& mask) {
    context->save_for_backward({q, k, v, mask});
    return cuda_plugin()->hydra_cosine(q, k, v, mask);
  }
  static variable_list backward(AutogradContext* context, const variable_list& by_outputs) {
    no_second_derivatives();
    const variable_list saved = context->get_saved_variables();
    const InputGradients gradient =
        cuda_plugin()->hydra_cosine_gradients(saved[0], saved[1], saved[2], saved[3], by_outputs[0]);
    return {gradient.q, gradient.k, gradient.v, {}};
  }
};

// y = scale · (x·W + b) − half_square · ‖x‖² of x (B,H,N,d).
at::Tensor before_map(const at::Tensor& x, const at::Tensor& mask, const LoopProjection& projection) {
  const at::Tensor own = select_tokens(x, mask).to(compute_type(x.scalar_type()));
  at::Tensor y = own;
  if (projection.weight.defined()) y = at::matmul(y, projection.weight.to(own.options()));
  if (projection.bias.defined()) y = y + projection.bias.to(own.options()).unsqueeze(1);
  if (projection.scale != 1) y = y * projection.scale;
  if (projection.half_square != 0) y = y - projection.half_square * own.square().sum(-1, true);
  return y.to(x.scalar_type());
}

// What a run is besides its tensors.
struct Settings {
  cpu::PointMap map;
  bool normalised;
};

LoopProjection turned(const at::Tensor& turns) { return {.turns = turns}; }

AttentionInput input_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  AttentionInput input;
  input.q = q;
  input.k = k;
  input.v = v;
  return input;
}

// q and k are y.
class FusedLinear : public torch::autograd::Function<FusedLinear> {
public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const at::Tensor& mask, const at::Tensor& query_turns,
                            const at::Tensor& key_turns, const Settings settings, std::int64_t* zeros) {
    context->save_for_backward({q, k, v, mask, query_turns, key_turns});
    context->saved_data["map"] = static_cast<std::int64_t>(settings.map);
    context->saved_data["normalised"] = settings.normalised;
    const AttentionOutput output = cuda_plugin()->linear(
        input_of(q, k, v), mask, settings.map, turned(query_turns), turned(key_turns), settings.normalised);
    *zeros = output.zero_denominators;
    return output.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& by_outputs) {
    no_second_derivatives();
    const variable_list saved = context->get_saved_variables();
    const InputGradients gradient = cuda_plugin()->linear_gradients(
        input_of(saved[0], saved[1], saved[2]), saved[3],
        static_cast<cpu::PointMap>(context->saved_data["map"].toInt()), turned(saved[4]), turned(saved[5]),
        context->saved_data["normalised"].toBool(), by_outputs[0]);
    return {gradient.q, gradient.k, gradient.v, {}, {}, {}, {}, {}};
  }
};

} // namespace

at::Tensor hydra_cosine_with_gradients(const AttentionInput& input, const at::Tensor& mask) {
  return FusedHydra::apply(input.q, input.k, input.v, mask);
}

AttentionOutput linear_with_gradients(const AttentionInput& input, const at::Tensor& mask,
                                      const cpu::PointMap map, const LoopProjection& query,
                                      const LoopProjection& key, const bool normalised) {
  AttentionOutput output;
  output.path = "fused cuda";
  output.out =
      FusedLinear::apply(before_map(input.q, mask, query), before_map(input.k, mask, key), input.v, mask,
                         query.turns, key.turns, Settings{map, normalised}, &output.zero_denominators);
  return output;
}

} // namespace hydrascope
