#include "engine/attention/interface/cuda_plugin.h"

#include <functional>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

using torch::autograd::AutogradContext, torch::autograd::variable_list;

// A kernel of the plug-in with all its arguments but q, k and v.
struct FusedCall : torch::CustomClassHolder {
  explicit FusedCall(const bool causal_) : causal(causal_) {}
  bool causal;
  std::function<at::Tensor(const AttentionInput&)> output;
  std::function<InputGradients(const AttentionInput&, const at::Tensor& grad_out)> gradients;
};

AttentionInput input_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const bool causal) {
  AttentionInput input;
  input.causal = causal;
  input.q = q;
  input.k = k;
  input.v = v;
  return input;
}

class FusedAttention : public torch::autograd::Function<FusedAttention> {
public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const c10::intrusive_ptr<FusedCall>& call) {
    context->save_for_backward({q, k, v});
    context->saved_data["call"] = at::IValue::make_capsule(call);
    return call->output(input_of(q, k, v, call->causal));
  }

  static variable_list backward(AutogradContext* context, const variable_list& grad_outputs) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "fused attention on the GPU has no second derivatives");
    const auto call = c10::static_intrusive_pointer_cast<FusedCall>(context->saved_data["call"].toCapsule());
    const variable_list saved = context->get_saved_variables();
    const AttentionInput input = input_of(saved[0], saved[1], saved[2], call->causal);
    const InputGradients by = call->gradients(input, grad_outputs[0]);
    return {by.q, by.k, by.v, {}};
  }
};

bool projects(const LoopProjection& projection) {
  return projection.weight.defined() || projection.bias.defined() || projection.scale != 1 ||
         projection.half_square != 0;
}

// y = scale · (x·W + b) − half_square · ‖x‖² of x (B,H,N,d), in float32, also under autocast: rounded to
// bfloat16, e^y would be 2 % off at |y| = 10.
at::Tensor before_map(const at::Tensor& x, const at::Tensor& mask, const LoopProjection& projection) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::Tensor own = select_tokens(x, mask).to(compute_type(x.scalar_type()));
  at::Tensor y = own;
  if (projection.weight.defined()) y = at::matmul(y, projection.weight.to(own.scalar_type()));
  if (projection.bias.defined()) y = y + projection.bias.to(own.scalar_type()).unsqueeze(1);
  if (projection.scale != 1) y = y * projection.scale;
  if (projection.half_square != 0) y = y - projection.half_square * own.square().sum(-1, true);
  return y;
}

} // namespace

at::Tensor hydra_cosine_with_gradients(const HydrascopeCudaPlugin& plugin, const AttentionInput& input,
                                       const at::Tensor& mask) {
  const auto call = c10::make_intrusive<FusedCall>(input.causal);
  call->output = [&plugin, mask](const AttentionInput& own) {
    return plugin.hydra_cosine(own.q, own.k, own.v, mask, own.causal);
  };
  call->gradients = [&plugin, mask](const AttentionInput& own, const at::Tensor& grad_out) {
    return plugin.hydra_cosine_gradients(own.q, own.k, own.v, mask, own.causal, grad_out);
  };
  return FusedAttention::apply(input.q, input.k, input.v, call);
}

AttentionOutput linear_with_gradients(const HydrascopeCudaPlugin& plugin, const AttentionInput& input,
                                      const at::Tensor& mask, const cpu::PointMap map,
                                      const LoopProjection& query, const LoopProjection& key,
                                      const bool normalised) {
  LoopProjection own_query, own_key; // of y
  own_query.token_weights = query.token_weights;
  own_key.token_weights = key.token_weights;
  AttentionOutput output;
  const auto call = c10::make_intrusive<FusedCall>(input.causal);
  call->output = [&](const AttentionInput& own) {
    output = plugin.linear(own, mask, map, own_query, own_key, normalised);
    return output.out;
  };
  call->gradients = [&plugin, mask, map, own_query, own_key, normalised](const AttentionInput& own,
                                                                         const at::Tensor& grad_out) {
    return plugin.linear_gradients(own, mask, map, own_query, own_key, normalised, grad_out);
  };
  const bool same = !projects(query) && !projects(key); // y is x
  const at::Tensor q = same ? input.q : before_map(input.q, mask, query);
  const at::Tensor k = same ? input.k : before_map(input.k, mask, key);
  output.out = FusedAttention::apply(q, k, input.v, call);
  call->output = nullptr; // it refers to local variables
  return output;
}

} // namespace hydrascope
