// A block for the single token that a decoder reads by state: loops over float32 rows in place of LibTorch's
// operators, each of which costs about as much here as the arithmetic of a whole projection. In bfloat16 only
// q, k, v, the layer's input, the state's output and the block's output are rounded; of many tokens each
// step's result is.
#include "engine/models/transformer/encoder_layer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include "engine/attention/interface/decoding.h"
#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

// In place. One of LibTorch's operators, which compute several exponentials at once.
void activate_row(float* row, const std::int64_t count, const Activation activation) {
  if (activation == Activation::identity) return;
  const at::Tensor x = at::from_blob(row, {count}, at::kFloat), y = activate(x, activation);
  std::copy_n(y.const_data_ptr<float>(), count, row);
}

} // namespace

void Norm::normalise_row(const float* x, float* out) const {
  const std::int64_t width = weight.numel();
  const at::Tensor scales = row_to(weight, at::kFloat).contiguous(),
                   offsets = bias.defined() ? row_to(bias, at::kFloat).contiguous() : bias;
  const float* const scale = scales.const_data_ptr<float>();
  double mean = 0, squares = 0;
  if (!rms) {
    for (std::int64_t i = 0; i < width; ++i) mean += static_cast<double>(x[i]);
    mean /= static_cast<double>(width);
  }
  for (std::int64_t i = 0; i < width; ++i) {
    const double centred = static_cast<double>(x[i]) - mean;
    squares += centred * centred;
  }
  const auto centre = static_cast<float>(mean);
  const auto by = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(width) + epsilon));
  for (std::int64_t i = 0; i < width; ++i) out[i] = (x[i] - centre) * by * scale[i];
  if (!bias.defined()) return;
  const float* const offset = offsets.const_data_ptr<float>();
  for (std::int64_t i = 0; i < width; ++i) out[i] += offset[i];
}

bool EncoderLayer::is_token(const at::Tensor& hidden, const BlockContext& context) const {
  return context.state != nullptr && hidden.is_cpu() && hidden.numel() == hidden.size(-1) && norm_first_ &&
         !c10::GradMode::is_enabled() && context.muted.empty() && context.outputs == 0 &&
         !context.read.defined() && !context.positions.defined() && !context.mask.defined() &&
         !scale1_.defined() && !scale2_.defined() &&
         std::ranges::all_of(
             std::array{&qkv_, &output_, &mlp_in_, &mlp_out_},
             [&](const Linear* const linear) { return linear->multiplies_rows_of(hidden.scalar_type()); });
}

at::Tensor EncoderLayer::run_token(const at::Tensor& hidden, const BlockContext& context) const {
  const std::int64_t width = hidden.numel(), head_width = width / heads_;
  const at::ScalarType type = hidden.scalar_type();
  const auto size = [](const std::int64_t count) { return static_cast<std::size_t>(count); };
  const at::Tensor result = type == at::kFloat ? hidden.clone() : row_to(hidden, at::kFloat);
  float* const x = result.data_ptr<float>();
  std::vector<float> out(size(width));
  // DecodingState may keep what it is given, so these own their memory.
  const at::Tensor normed = at::empty({1, 1, width}, result.options());
  const at::Tensor qkv = at::empty({1, heads_ + 2 * key_heads_, 1, head_width}, result.options());
  norm1_.normalise_row(x, normed.data_ptr<float>());
  qkv_.multiply_row(normed.const_data_ptr<float>(), qkv.data_ptr<float>());
  if (context.rotary != nullptr) // q and k follow each other
    context.rotary->rotate_token(qkv.data_ptr<float>(), heads_ + key_heads_, context.first_position);
  const at::Tensor heads = row_to(qkv, type);

  const AttentionInput input =
      attention_input(heads.narrow(1, 0, heads_), heads.narrow(1, heads_, key_heads_),
                      heads.narrow(1, heads_ + key_heads_, key_heads_), row_to(normed, type), context);
  const at::Tensor attended =
      context.kernel.finish(context.state->extend(input), context.mask, context.kernel_parameters);
  const at::Tensor finished = row_to(attended, at::kFloat).contiguous();
  output_.multiply_row(finished.const_data_ptr<float>(), out.data());
  for (std::int64_t i = 0; i < width; ++i) x[i] += out[size(i)];

  std::vector<float> before(size(width)), inner(size(mlp_in_.outputs()));
  norm2_.normalise_row(x, before.data());
  mlp_in_.multiply_row(before.data(), inner.data());
  const std::int64_t features = mlp_out_.parts().front().weight.size(1);
  activate_row(inner.data(), features, activation_);
  for (std::int64_t i = 0; gated_ && i < features; ++i) inner[size(i)] *= inner[size(features + i)];
  mlp_out_.multiply_row(inner.data(), out.data());
  for (std::int64_t i = 0; i < width; ++i) x[i] += out[size(i)];
  return row_to(result, type);
}

} // namespace hydrascope
