#include "tests/engine/attention/inputs.h"

#include <algorithm>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

namespace hydrascope::testing_inputs {

std::string describe(const Case& shape) {
  return fmt::format("B={} H={} N={} d={}{}{}{}", shape.batch, shape.heads, shape.tokens, shape.width,
                     shape.masked ? " masked" : "", shape.causal ? " causal" : "",
                     shape.layout.rows > 0 ? " image" : "");
}

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, at::detail::createCPUGenerator(seed));
}

AttentionInput make_input(const Case& shape, std::uint64_t seed, double scale) {
  const std::vector<std::int64_t> sizes{shape.batch, shape.heads, shape.tokens, shape.width};
  AttentionInput input;
  input.q = normal(sizes, seed) * scale;
  input.k = normal(sizes, seed + 1) * scale;
  input.v = normal(sizes, seed + 2);
  input.layer_input = normal({shape.batch, shape.tokens, shape.heads * shape.width}, seed + 4) * scale;
  input.causal = shape.causal;
  input.layout = shape.layout;
  if (shape.masked) {
    input.mask = at::rand({shape.batch, shape.tokens}, at::detail::createCPUGenerator(seed + 3)) > 0.33;
    input.mask.select(0, 0).select(0, 0).fill_(false);
    if (shape.tokens > 1) input.mask.select(0, 0).select(0, shape.tokens - 1).fill_(true);
    if (shape.batch > 1) input.mask.select(0, shape.batch - 1).fill_(false);
  }
  return input;
}

KernelParameters moved_parameters(const Kernel& kernel, const Case& shape, std::uint64_t seed,
                                  const std::int64_t key_heads) {
  KernelParameters parameters = kernel.initial_parameters({shape.heads, shape.width, key_heads});
  for (auto& [name, value] : parameters) value = value + 0.3 * normal(value.sizes(), seed++);
  return parameters;
}

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  const double largest = b.abs().max().item<double>();
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>() / std::max(largest, 1e-30);
}

} // namespace hydrascope::testing_inputs
