#include "engine/training/loop/low_rank.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include "engine/training/data/random.h"

namespace hydrascope::training {
namespace {

constexpr std::string_view first = ".lora_A", second = ".lora_B";

at::Tensor uniform(const std::int64_t rows, const std::int64_t columns, const double most,
                   const std::uint64_t key) {
  at::Tensor values = at::empty({rows, columns}, at::kFloat);
  auto* const data = values.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i)
    data[i] = static_cast<float>(most * (2 * unit(mix({key, static_cast<std::uint64_t>(i)})) - 1));
  return values;
}

} // namespace

void add_factors(NamedTensors& leaves, const std::string& weight, const at::Tensor& value,
                 const LowRank& update, const std::uint64_t key) {
  const std::int64_t out = value.size(0), in = value.size(1), rank = update.rank;
  const double most = 1 / std::sqrt(static_cast<double>(in));
  leaves[weight + std::string(first)] = uniform(rank, in, most, key).requires_grad_(true);
  leaves[weight + std::string(second)] = at::zeros({out, rank}, at::kFloat).requires_grad_(true);
}

NamedTensors with_updates(const Model& model, const NamedTensors& parameters, const LowRank& update) {
  const double scale = update.alpha / update.rank;
  NamedTensors result;
  for (const auto& [name, value] : parameters) {
    if (name.ends_with(second)) continue;
    if (!name.ends_with(first)) {
      result[name] = value;
      continue;
    }
    const std::string weight = name.substr(0, name.size() - first.size());
    result[weight] = model.parameter(weight).detach().to(at::kFloat) +
                     at::matmul(parameters.at(weight + std::string(second)), value) * scale;
  }
  return result;
}

} // namespace hydrascope::training
