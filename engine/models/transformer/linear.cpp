#include "engine/models/transformer/linear.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "engine/attention/interface/tokens.h"
#include "engine/models/transformer/checkpoint.h"
#include "engine/models/transformer/row_weights.h"

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

// The oneDNN operations of this LibTorch, looked up once.
struct OneDnn {
  std::optional<c10::TypedOperatorHandle<Reorder>> reorder =
      operation<Reorder>("mkldnn::_reorder_linear_weight");
  std::optional<c10::TypedOperatorHandle<Pointwise>> pointwise =
      operation<Pointwise>("mkldnn::_linear_pointwise");
  bool bfloat16 = supports("mkldnn::_is_mkldnn_bf16_supported");
  bool float16 = supports("mkldnn::_is_mkldnn_fp16_supported");

  static bool supports(const char* name) {
    const auto query = operation<Supported>(name);
    return query && query->call();
  }
  bool can(at::ScalarType type) const {
    return reorder && pointwise &&
           (type == at::kFloat || (type == at::kBFloat16 && bfloat16) || (type == at::kHalf && float16));
  }
};

// Rows of the product that the packed layout is optimised for, about a picture's tokens; any number works.
const std::optional<c10::SymInt> typical_rows(c10::SymInt(197));

const OneDnn& one_dnn() {
  static const OneDnn library;
  return library;
}

// The projection x·W_pᵀ + b_p followed, head by head, by y = x·W + b; weight (H,d,d), bias (H,d) or
// undefined.
Linear::Part followed_by(const Linear::Part& projection, const at::Tensor& weight, const at::Tensor& bias) {
  const std::int64_t heads = weight.size(0), width = weight.size(1), in = projection.weight.size(1);
  const auto own = [](const at::Tensor& x) { return x.detach().to(at::kDouble); };
  const at::Tensor map = own(weight);
  Linear::Part result;
  result.weight = at::matmul(map.transpose(1, 2), own(projection.weight).view({heads, width, in}))
                      .reshape({heads * width, in})
                      .to(projection.weight.options());
  at::Tensor sum;
  if (projection.bias.defined())
    sum = at::matmul(own(projection.bias).view({heads, 1, width}), map).view({heads * width});
  if (bias.defined()) sum = sum.defined() ? sum + own(bias).reshape(-1) : own(bias).reshape(-1);
  if (sum.defined()) result.bias = sum.to(projection.weight.options());
  return result;
}

// Changes when a tensor is written in place.
std::uint32_t version(const at::Tensor& x) {
  return x.defined() && !x.is_inference() ? static_cast<std::uint32_t>(x._version()) : 0;
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

// The stored product has no derivative, so inputs that need a gradient use at::linear. So do weights that
// need a gradient: training changes them in place, which would not change the stored copy.
bool Linear::constant(const at::Tensor& x) const {
  return !(c10::GradMode::is_enabled() && x.requires_grad()) && !needs_gradient();
}

bool Linear::needs_gradient() const {
  return std::ranges::any_of(parts_, [](const Part& part) {
    return part.weight.requires_grad() || (part.bias.defined() && part.bias.requires_grad());
  });
}

bool Linear::packable(const at::Tensor& x) const {
  const at::Tensor& weight = parts_.front().weight;
  if (!x.device().is_cpu() || !weight.device().is_cpu() || x.numel() == 0) return false;
  if (x.scalar_type() != weight.scalar_type() || !one_dnn().can(weight.scalar_type())) return false;
  return constant(x);
}

Linear::Joined Linear::joined() const {
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
  Joined all;
  all.weight = weights.size() == 1 ? weights.front() : at::cat(weights);
  if (any_bias) all.bias = biases.size() == 1 ? biases.front() : at::cat(biases);
  return all;
}

at::Tensor Linear::run_packed(const at::Tensor& x, bool with_gelu) const {
  std::call_once(once_, [&] {
    stored_ = joined();
    const c10::NoGradGuard no_gradient;
    stored_.weight = one_dnn().reorder->call(stored_.weight.contiguous(), typical_rows);
    // At once: until the end of the run a model would be in memory twice.
    for (const Part& part : parts_) release_pages(part.weight);
  });
  std::optional<at::Tensor> bias;
  if (stored_.bias.defined()) bias = stored_.bias;
  return one_dnn().pointwise->call(x.contiguous(), stored_.weight, bias, with_gelu ? "gelu" : "none",
                                   c10::List<std::optional<at::Scalar>>(), with_gelu ? "none" : "");
}

at::Tensor Linear::run_joined(const at::Tensor& x) const {
  std::call_once(once_, [&] { stored_ = joined(); });
  return at::linear(x, stored_.weight, stored_.bias);
}

bool Linear::multiplies_rows_of(const at::ScalarType type) const {
  return (type == at::kFloat || type == at::kBFloat16) && !needs_gradient() &&
         std::ranges::all_of(parts_, [&](const Part& part) {
           return part.weight.scalar_type() == type && part.weight.is_cpu() && part.weight.is_contiguous();
         });
}

bool Linear::is_row(const at::Tensor& x) const {
  return x.is_cpu() && x.numel() > 0 && x.size(-1) == x.numel() && multiplies_rows_of(x.scalar_type()) &&
         !(c10::GradMode::is_enabled() && x.requires_grad());
}

std::int64_t Linear::outputs() const {
  std::int64_t sum = 0;
  for (const Part& part : parts_) sum += part.weight.size(0);
  return sum;
}

// The packed layout is made for many rows and is not used here.
void Linear::multiply_row(const float* x, float* out) const {
  std::call_once(rows_once_, [&] {
    std::vector<at::Tensor> weights;
    for (const Part& part : parts_) weights.push_back(part.weight);
    rows_ = RowWeights::of(weights);
  });
  rows_->multiply(x, out);
  for (const Part& part : parts_) {
    const std::int64_t count = part.weight.size(0);
    if (part.bias.defined()) {
      const at::Tensor bias = part.bias.to(at::kFloat).contiguous();
      const float* const values = bias.const_data_ptr<float>();
      for (std::int64_t i = 0; i < count; ++i) out[i] += values[i];
    }
    out += count;
  }
}

at::Tensor Linear::run_row(const at::Tensor& x) const {
  const at::Tensor from = x.to(at::kFloat).contiguous();
  const at::Tensor all = at::empty({outputs()}, from.options());
  multiply_row(from.const_data_ptr<float>(), all.data_ptr<float>());
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = all.numel();
  return row_to(all, x.scalar_type()).view(shape);
}

at::Tensor Linear::operator()(const at::Tensor& x, Activation activation) const {
  if (is_row(x)) return activate(run_row(x), activation);
  if (packable(x)) {
    const bool fused = activation == Activation::gelu;
    const at::Tensor y = run_packed(x, fused);
    return fused ? y : activate(y, activation);
  }
  return activate(at::linear(x, parts_.front().weight, parts_.front().bias), activation);
}

std::vector<at::Tensor> Linear::split(const at::Tensor& x) const {
  std::vector<at::Tensor> result;
  const bool row = is_row(x), packed = !row && packable(x);
  if (row || packed || (!parts_.front().weight.is_cpu() && constant(x))) {
    const at::Tensor all = row ? run_row(x) : packed ? run_packed(x, false) : run_joined(x);
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

std::shared_ptr<const FoldedProjection> FoldedProjections::of(const Linear& qkv, const Kernel& kernel,
                                                              const KernelParameters& parameters,
                                                              const std::int64_t heads) const {
  const Linear::Part &query = qkv.parts()[0], &key = qkv.parts()[1], &value = qkv.parts()[2];
  const std::int64_t head_width = query.weight.size(0) / heads;
  auto maps = kernel.leading_maps({heads, head_width, key.weight.size(0) / head_width}, parameters);
  if (!maps) return nullptr;
  const std::array now{maps->query_weight, maps->query_bias, maps->key_weight, maps->key_bias};
  std::vector<std::uint32_t> versions;
  for (const at::Tensor& map : now) versions.push_back(version(map));
  const std::lock_guard lock(mutex_);
  const bool same =
      versions == versions_ &&
      std::ranges::equal(now, last_maps_, [](const auto& a, const auto& b) { return a.is_same(b); });
  if (!same) {
    last_maps_.assign(now.begin(), now.end());
    versions_ = std::move(versions);
    folded_ = nullptr;
    return nullptr;
  }
  if (!folded_) {
    const at::NoGradGuard no_gradients;
    std::vector<Linear::Part> parts{followed_by(query, maps->query_weight, maps->query_bias),
                                    followed_by(key, maps->key_weight, maps->key_bias), value};
    folded_ = std::make_shared<const FoldedProjection>(std::move(parts), std::move(maps->others));
  }
  return folded_;
}

} // namespace hydrascope
