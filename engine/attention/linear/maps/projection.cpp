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

at::Tensor project(const at::Tensor& x, Side side, const ProjectionForm& form,
                   const KernelParameters& parameters) {
  const std::int64_t heads = x.size(1), width = x.size(3);
  const std::string name = prefix(side, form);
  at::Tensor y = x;
  if (const at::Tensor* weight = find(parameters, name + ".weight", {heads, width, width}))
    y = at::matmul(y, weight->to(x.scalar_type()));
  if (!form.bias) return y;
  if (const at::Tensor* bias = find(parameters, name + ".bias", {heads, width}))
    y = y + bias->to(x.scalar_type()).unsqueeze(1);
  return y;
}

LoopProjection loop_projection_of(Side side, const ProjectionForm& form, std::int64_t heads,
                                  std::int64_t head_width, const KernelParameters& parameters) {
  const std::string name = prefix(side, form);
  LoopProjection result;
  if (const at::Tensor* weight = find(parameters, name + ".weight", {heads, head_width, head_width}))
    result.weight = *weight;
  if (const at::Tensor* bias = form.bias ? find(parameters, name + ".bias", {heads, head_width}) : nullptr)
    result.bias = *bias;
  return result;
}

std::optional<LeadingMaps> leading_maps_of(const ProjectionForm& form, std::int64_t heads,
                                           std::int64_t head_width, const KernelParameters& parameters) {
  const LoopProjection query = loop_projection_of(Side::query, form, heads, head_width, parameters);
  const LoopProjection key = loop_projection_of(Side::key, form, heads, head_width, parameters);
  if (!query.weight.defined() || !key.weight.defined()) return std::nullopt;
  LeadingMaps maps{query.weight, key.weight, query.bias, key.bias, parameters};
  for (auto& [name, value] : maps.others)
    if (name.starts_with("query_map.") || name.starts_with("key_map.")) value = at::Tensor();
  return maps;
}

KernelParameters identity_projections(const ProjectionForm& form, std::int64_t heads,
                                      std::int64_t head_width) {
  KernelParameters parameters;
  for (const Side side : {Side::query, Side::key}) {
    const std::string name = prefix(side, form);
    parameters[name + ".weight"] = at::eye(head_width).repeat({heads, 1, 1});
    if (form.bias) parameters[name + ".bias"] = at::zeros({heads, head_width});
  }
  return parameters;
}

KernelParameters random_projections(const ProjectionForm& form, std::int64_t heads, std::int64_t head_width,
                                    std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const double bound = std::sqrt(6.0 / static_cast<double>(head_width));
  KernelParameters parameters = identity_projections(form, heads, head_width);
  for (auto& [name, value] : parameters)
    if (name.ends_with(".weight"))
      value = (2 * at::rand({heads, head_width, head_width}, generator) - 1) * bound;
  return parameters;
}

double projection_cost(const AttentionShape& shape) {
  return 2.0 * static_cast<double>(shape.tokens) * model_width(shape) * static_cast<double>(shape.head_width);
}

} // namespace hydrascope
