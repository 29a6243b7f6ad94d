#include "engine/attention/linear/maps/projection.h"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/parameters.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

std::string prefix(Side side, const ProjectionForm& form) {
  return side == Side::query || form.shared ? "query_map" : "key_map";
}

// The number of heads that the map of a side has.
std::int64_t map_heads(Side side, const ProjectionForm& form, const HeadShape& heads) {
  return side == Side::query && !form.shared ? heads.heads : heads.of_keys();
}

const at::Tensor* find(const KernelParameters& parameters, const std::string& name, at::IntArrayRef shape) {
  const auto found = parameters.find(name);
  if (found == parameters.end() || !found->second.defined()) return nullptr;
  if (found->second.sizes() != shape)
    throw UsageError(name, fmt::format("its shape is ({})", fmt::join(found->second.sizes().vec(), ",")),
                     fmt::format("for this input it is ({})", fmt::join(shape.vec(), ",")));
  return &found->second;
}

} // namespace

ProjectionForm projection_form(const KernelSpec& spec) {
  return {.shared = flag_parameter(spec, "shared", false), .bias = flag_parameter(spec, "bias", true)};
}

at::Tensor project(const at::Tensor& x, Side side, const ProjectionForm& form, const HeadShape& heads,
                   const KernelParameters& parameters) {
  const LoopProjection map = loop_projection_of(side, form, heads, parameters);
  at::Tensor y = x;
  if (map.weight.defined()) y = at::matmul(y, map.weight.to(x.scalar_type()));
  if (map.bias.defined()) y = y + map.bias.to(x.scalar_type()).unsqueeze(1);
  return y;
}

LoopProjection loop_projection_of(Side side, const ProjectionForm& form, const HeadShape& heads,
                                  const KernelParameters& parameters) {
  const std::string name = prefix(side, form);
  const std::int64_t count = map_heads(side, form, heads), width = heads.head_width;
  LoopProjection result;
  if (const at::Tensor* weight = find(parameters, name + ".weight", {count, width, width}))
    result.weight = *weight;
  if (const at::Tensor* bias = form.bias ? find(parameters, name + ".bias", {count, width}) : nullptr)
    result.bias = *bias;
  if (side == Side::key || count == heads.heads) return result;
  const std::int64_t group = heads.heads / count;
  if (result.weight.defined()) result.weight = result.weight.repeat_interleave(group, 0);
  if (result.bias.defined()) result.bias = result.bias.repeat_interleave(group, 0);
  return result;
}

std::optional<LeadingMaps> leading_maps_of(const ProjectionForm& form, const HeadShape& heads,
                                           const KernelParameters& parameters) {
  if (form.shared && heads.of_keys() != heads.heads) return std::nullopt;
  const LoopProjection query = loop_projection_of(Side::query, form, heads, parameters);
  const LoopProjection key = loop_projection_of(Side::key, form, heads, parameters);
  if (!query.weight.defined() || !key.weight.defined()) return std::nullopt;
  LeadingMaps maps{query.weight, key.weight, query.bias, key.bias, parameters};
  for (auto& [name, value] : maps.others)
    if (name.starts_with("query_map.") || name.starts_with("key_map.")) value = at::Tensor();
  return maps;
}

KernelParameters identity_projections(const ProjectionForm& form, const HeadShape& heads) {
  KernelParameters parameters;
  for (const Side side : {Side::query, Side::key}) {
    const std::string name = prefix(side, form);
    const std::int64_t count = map_heads(side, form, heads);
    parameters[name + ".weight"] = at::eye(heads.head_width).repeat({count, 1, 1});
    if (form.bias) parameters[name + ".bias"] = at::zeros({count, heads.head_width});
  }
  return parameters;
}

KernelParameters random_projections(const ProjectionForm& form, const HeadShape& heads,
                                    const std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const double bound = std::sqrt(6.0 / static_cast<double>(heads.head_width));
  KernelParameters parameters = identity_projections(form, heads);
  for (auto& [name, value] : parameters)
    if (name.ends_with(".weight")) value = (2 * at::rand(value.sizes(), generator) - 1) * bound;
  return parameters;
}

double projection_cost(const AttentionShape& shape) {
  const HeadShape heads = heads_of(shape);
  const auto width = static_cast<double>(shape.head_width);
  return static_cast<double>(shape.tokens) * static_cast<double>(heads.heads + heads.of_keys()) * width *
         width;
}

} // namespace hydrascope
