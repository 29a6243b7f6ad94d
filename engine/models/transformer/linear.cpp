#include "engine/models/transformer/linear.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

namespace hydrascope {
namespace {

using Reorder = at::Tensor(const at::Tensor&, std::optional<c10::SymInt>);
using Pointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                             c10::string_view, c10::List<std::optional<at::Scalar>>,
                             std::optional<c10::string_view>);
using Supported = bool();

template <typename Signature>
std::optional<c10::TypedOperatorHandle<Signature>> operation(const char* name) {
  const auto schema = c10::Dispatcher::singleton().findSchema({name, ""});
  if (!schema) return std::nullopt;
  return schema->template typed<Signature>();
}

// What this LibTorch's oneDNN offers, looked up once.
struct OneDnn {
  std::optional<c10::TypedOperatorHandle<Reorder>> reorder =
      operation<Reorder>("mkldnn::_reorder_linear_weight");
  std::optional<c10::TypedOperatorHandle<Pointwise>> pointwise =
      operation<Pointwise>("mkldnn::_linear_pointwise");
  bool bfloat16 = supports("mkldnn::_is_mkldnn_bf16_supported");
  bool float16 = supports("mkldnn::_is_mkldnn_fp16_supported");

  static bool supports(const char* question) {
    const auto ask = operation<Supported>(question);
    return ask && ask->call();
  }
  bool can(at::ScalarType type) const {
    return reorder && pointwise &&
           (type == at::kFloat || (type == at::kBFloat16 && bfloat16) || (type == at::kHalf && float16));
  }
};

// Rows of the product that the packed layout is chosen for: about a picture's tokens. Others run as well.
const std::optional<c10::SymInt> typical_rows(c10::SymInt(197));

const OneDnn& one_dnn() {
  static const OneDnn library;
  return library;
}

} // namespace

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::identity: return x;
    case Activation::gelu: return at::gelu(x);
    case Activation::gelu_tanh: return at::gelu(x, "tanh");
    case Activation::quick_gelu: return x * at::sigmoid(1.702 * x);
    case Activation::relu: return at::relu(x);
    case Activation::silu: return at::silu(x);
  }
  return x;
}

// oneDNN's packed product has no derivative: what takes part in a gradient goes through at::linear. So do
// weights in training at any time: they change in place, and what is packed would not.
bool Linear::packable(const at::Tensor& x) const {
  const at::Tensor& weight = parts_.front().weight;
  if (!x.device().is_cpu() || !weight.device().is_cpu() || x.numel() == 0) return false;
  if (x.scalar_type() != weight.scalar_type() || !one_dnn().can(weight.scalar_type())) return false;
  if (c10::GradMode::is_enabled() && x.requires_grad()) return false;
  return std::none_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.weight.requires_grad() || (part.bias.defined() && part.bias.requires_grad());
  });
}

at::Tensor Linear::run_packed(const at::Tensor& x, bool with_gelu) const {
  std::call_once(once_, [&] {
    const c10::NoGradGuard no_gradient;
    std::vector<at::Tensor> weights;
    std::vector<at::Tensor> biases;
    const bool any_bias =
        std::any_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.bias.defined(); });
    for (const Part& part : parts_) {
      weights.push_back(part.weight.detach());
      biases.push_back(part.bias.defined() ? part.bias.detach()
                                           : at::zeros({part.weight.size(0)}, part.weight.options()));
    }
    const at::Tensor weight = weights.size() == 1 ? weights.front() : at::cat(weights);
    if (any_bias) packed_bias_ = biases.size() == 1 ? biases.front() : at::cat(biases);
    packed_ = one_dnn().reorder->call(weight.contiguous(), typical_rows);
  });
  std::optional<at::Tensor> bias;
  if (packed_bias_.defined()) bias = packed_bias_;
  return one_dnn().pointwise->call(x.contiguous(), packed_, bias, with_gelu ? "gelu" : "none",
                                   c10::List<std::optional<at::Scalar>>(), with_gelu ? "none" : "");
}

at::Tensor Linear::operator()(const at::Tensor& x, Activation activation) const {
  if (packable(x)) {
    const bool fused = activation == Activation::gelu;
    const at::Tensor y = run_packed(x, fused);
    return fused ? y : activate(y, activation);
  }
  return activate(at::linear(x, parts_.front().weight, parts_.front().bias), activation);
}

std::vector<at::Tensor> Linear::split(const at::Tensor& x) const {
  std::vector<at::Tensor> result;
  if (packable(x)) {
    const at::Tensor all = run_packed(x, false);
    std::int64_t at_column = 0;
    for (const Part& part : parts_) {
      result.push_back(all.narrow(-1, at_column, part.weight.size(0)));
      at_column += part.weight.size(0);
    }
    return result;
  }
  for (const Part& part : parts_) result.push_back(at::linear(x, part.weight, part.bias));
  return result;
}

} // namespace hydrascope
