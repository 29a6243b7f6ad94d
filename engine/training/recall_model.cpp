#include "engine/training/recall_model.h"

#include <algorithm>
#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/plain/error.h"
#include "engine/runtime/execution.h"
#include "engine/training/random.h"

namespace hydrascope::training {
namespace {

// U(−1/√in, 1/√in), as torch::nn::Linear starts; biases 0.
void add_linear(NamedTensors& leaves, const std::string& name, const std::int64_t in, const std::int64_t out,
                const at::Generator& generator) {
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  leaves[name + ".weight"] = (2 * at::rand({out, in}, generator) - 1) * bound;
  leaves[name + ".bias"] = at::zeros({out});
}

void add_norm(NamedTensors& leaves, const std::string& name, const std::int64_t width) {
  leaves[name + ".weight"] = at::ones({width});
  leaves[name + ".bias"] = at::zeros({width});
}

std::string in_layer(const int layer, const char* name) { return fmt::format("layer.{}.{}", layer, name); }

void require_causal(const Kernel& kernel, const RecallRequest& request) {
  const Support support = kernel.supports({.batch = request.settings.batch,
                                           .heads = request.model.heads,
                                           .tokens = request.task.tokens - 1,
                                           .head_width = request.model.head_width,
                                           .has_layer_input = true,
                                           .causal = true});
  if (!support.ok)
    throw UsageError("--kernel " + kernel.spec().text(), support.reason, "choose another kernel");
}

} // namespace

Rotary::Rotary(const std::int64_t tokens, const std::int64_t head_width) {
  const std::int64_t half = head_width / 2;
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor frequencies =
      at::pow(10'000.0, at::arange(half, options) * (-1.0 / static_cast<double>(half)));
  const at::Tensor angles = at::outer(at::arange(tokens, options), frequencies);
  cosine_ = at::cat({angles.cos(), angles.cos()}, 1).to(at::kFloat);
  sine_ = at::cat({-angles.sin(), angles.sin()}, 1).to(at::kFloat);
}

at::Tensor Rotary::operator()(const at::Tensor& x) const {
  return x * cosine_ + x.roll(x.size(3) / 2, 3) * sine_;
}

RecallModel::RecallModel(const RecallRequest& request, const std::uint64_t seed)
    : shape_(request.model),
      kernel_(make_kernel(seeded(request.kernel, seed))),
      rotary_(request.task.tokens - 1, request.model.head_width) {
  require_causal(*kernel_, request);
  at::Generator generator = at::detail::createCPUGenerator(mix({seed, 1}));
  const std::int64_t width = static_cast<std::int64_t>(shape_.heads) * shape_.head_width;
  const std::int64_t vocabulary = request.task.keys + request.task.values;
  leaves_["embedding.weight"] = at::randn({vocabulary, width}, generator);
  for (int layer = 0; layer < shape_.layers; ++layer) {
    add_norm(leaves_, in_layer(layer, "attention_norm"), width);
    add_linear(leaves_, in_layer(layer, "query_key_value"), width, 3 * width, generator);
    add_linear(leaves_, in_layer(layer, "output"), width, width, generator);
    add_norm(leaves_, in_layer(layer, "mlp_norm"), width);
    add_linear(leaves_, in_layer(layer, "mlp_in"), width, 4 * width, generator);
    add_linear(leaves_, in_layer(layer, "mlp_out"), 4 * width, width, generator);
    const auto held = kernel_->fixed_parameters();
    fixed_.emplace_back();
    for (const auto& [name, value] : kernel_->initial_parameters(shape_.heads, shape_.head_width, layer)) {
      if (std::ranges::find(held, name) != held.end())
        fixed_.back()[name] = value;
      else
        leaves_[in_layer(layer, "kernel.") + name] = value.clone();
    }
  }
  add_norm(leaves_, "final_norm", width);
  add_linear(leaves_, "logits", width, vocabulary, generator);
  for (auto& [name, value] : leaves_) value.requires_grad_(true);
}

at::Tensor RecallModel::linear(const at::Tensor& x, const std::string& name) const {
  return at::linear(x, leaf(name + ".weight"), leaf(name + ".bias"));
}

at::Tensor RecallModel::norm(const at::Tensor& x, const std::string& name) const {
  const at::Tensor weight = leaf(name + ".weight");
  return at::layer_norm(x, weight.sizes(), weight, leaf(name + ".bias"), 1e-5);
}

KernelParameters RecallModel::kernel_parameters(const int layer) const {
  KernelParameters parameters = fixed_.at(static_cast<std::size_t>(layer));
  const std::string prefix = in_layer(layer, "kernel.");
  for (auto one = leaves_.lower_bound(prefix); one != leaves_.end() && one->first.starts_with(prefix); ++one)
    parameters[one->first.substr(prefix.size())] = one->second;
  return parameters;
}

at::Tensor RecallModel::attention(const at::Tensor& x, const int layer, const Visitor& visit) const {
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const at::Tensor parts = linear(x, in_layer(layer, "query_key_value"))
                               .view({batch, tokens, 3, shape_.heads, shape_.head_width})
                               .permute({2, 0, 3, 1, 4}); // (3,B,H,N,d)
  AttentionInput input;
  input.q = rotary_(parts.select(0, 0));
  input.k = rotary_(parts.select(0, 1));
  input.v = parts.select(0, 2);
  input.layer_input = x;
  input.causal = true;
  const KernelParameters parameters = kernel_parameters(layer);
  const AttentionOutput output = kernel_->run(input, parameters);
  if (visit) visit(layer, input, parameters, output);
  const at::Tensor finished = kernel_->finish(output.out, {}, parameters);
  return linear(finished.transpose(1, 2).reshape(x.sizes()), in_layer(layer, "output"));
}

at::Tensor RecallModel::logits(const at::Tensor& tokens, const at::Tensor& positions,
                               const Visitor& visit) const {
  at::Tensor x = at::embedding(leaf("embedding.weight"), tokens); // (B,N,D)
  for (int layer = 0; layer < shape_.layers; ++layer) {
    x = x + attention(norm(x, in_layer(layer, "attention_norm")), layer, visit);
    // After the last attention only what is asked for goes on.
    if (layer + 1 == shape_.layers) x = at::index_select(x.flatten(0, 1), 0, positions);
    const at::Tensor within =
        at::gelu(linear(norm(x, in_layer(layer, "mlp_norm")), in_layer(layer, "mlp_in")));
    x = x + linear(within, in_layer(layer, "mlp_out"));
  }
  return linear(norm(x, "final_norm"), "logits");
}

} // namespace hydrascope::training
