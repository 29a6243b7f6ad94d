#include "engine/models/transformer/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/tensor.h>

namespace hydrascope {
namespace {

constexpr std::int64_t first_table = 512; // tokens

// Llama 3.1's scaling: long wavelengths are stretched by `factor`, short ones stay, those between are
// interpolated by how often they fit into the context that the model was first trained with.
double llama3_frequency(const RotaryConfig& config, const double frequency) {
  const double turns = config.original_positions * frequency / (2 * std::numbers::pi);
  if (turns < config.low_frequency_factor) return frequency / config.factor;
  if (turns > config.high_frequency_factor) return frequency;
  const double kept =
      (turns - config.low_frequency_factor) / (config.high_frequency_factor - config.low_frequency_factor);
  return (1 - kept) * frequency / config.factor + kept * frequency;
}

} // namespace

std::vector<double> rotary_frequencies(const RotaryConfig& config, const std::int64_t head_width) {
  std::vector<double> frequencies;
  for (std::int64_t pair = 0; pair < head_width / 2; ++pair) {
    const double frequency =
        std::pow(config.base, -2.0 * static_cast<double>(pair) / static_cast<double>(head_width));
    switch (config.scaling) {
      case RotaryConfig::Scaling::none: frequencies.push_back(frequency); break;
      case RotaryConfig::Scaling::linear: frequencies.push_back(frequency / config.factor); break;
      case RotaryConfig::Scaling::llama3: frequencies.push_back(llama3_frequency(config, frequency)); break;
    }
  }
  return frequencies;
}

Rotary::Rotary(const RotaryConfig& config, const std::int64_t tokens, const std::int64_t head_width,
               const at::Device device)
    : frequencies_(rotary_frequencies(config, head_width)), tokens_(tokens), device_(device) {}

Rotary::Table Rotary::table(const std::int64_t tokens) const {
  const std::lock_guard lock(mutex_);
  if (table_.cosine.defined() && table_.cosine.size(0) >= tokens) return table_;
  std::int64_t rows = first_table;
  while (rows < tokens) rows *= 2;
  rows = std::max(tokens, std::min(rows, tokens_));
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor angles = at::outer(at::arange(rows, options), at::tensor(frequencies_, options));
  const at::Tensor sine = angles.sin();
  table_.cosine = at::cat({angles.cos(), angles.cos()}, 1).to(device_, at::kFloat);
  table_.sine = at::cat({-sine, sine}, 1).to(device_, at::kFloat);
  return table_;
}

void Rotary::rotate_token(float* x, const std::int64_t heads, const std::int64_t position) const {
  const Table all = table(position + 1);
  const std::int64_t width = all.cosine.size(1), half = width / 2;
  const float* const cosine = all.cosine.const_data_ptr<float>() + position * width;
  const float* const sine = all.sine.const_data_ptr<float>() + position * width;
  for (float* const end = x + heads * width; x < end; x += width)
    for (std::int64_t i = 0; i < half; ++i) {
      const float left = x[i], right = x[i + half];
      x[i] = left * cosine[i] + right * sine[i];
      x[i + half] = right * cosine[i + half] + left * sine[i + half];
    }
}

at::Tensor Rotary::operator()(const at::Tensor& x, const at::Tensor& positions,
                              const std::int64_t first) const {
  const std::int64_t tokens = x.size(2);
  const Table all = table(positions.defined() ? tokens_ : first + tokens);
  const auto of = [&](const at::Tensor& values) {
    return positions.defined() ? values.index_select(0, positions) : values.narrow(0, first, tokens);
  };
  return (x * of(all.cosine) + x.roll(x.size(3) / 2, 3) * of(all.sine)).to(x.scalar_type());
}

} // namespace hydrascope
