#include "engine/run/quantities/value_norms.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace hydrascope {
namespace {

constexpr int kHeads = 2, kTokens = 5, kWidth = 3;

// The length of what one token's value becomes behind W_o, by itself.
double length(const at::Tensor& v, const at::Tensor& output_weight, std::int64_t first) {
  return at::linear(v, output_weight.slice(1, first, first + v.size(0))).norm().item<double>();
}

TEST(ValueNorms, AreTheLengthsOfTheTransformedValues) {
  AttentionInput input;
  input.q = input.k = at::rand({1, kHeads, kTokens, kWidth});
  input.v = at::randn({1, kHeads, kTokens, kWidth});
  const at::Tensor output_weight = at::randn({kHeads * kWidth, kHeads * kWidth});
  const at::Tensor norms = value_norms(input, output_weight, kHeads);
  ASSERT_EQ(norms.sizes(), at::IntArrayRef({1, kHeads, kTokens}));
  for (int head = 0; head < kHeads; ++head)
    for (int token = 0; token < kTokens; ++token)
      EXPECT_NEAR(norms[0][head][token].item<double>(),
                  length(input.v[0][head][token], output_weight, head * kWidth), 1e-4);

  // One head over all features: a token's whole value through the whole of W_o.
  const at::Tensor whole = value_norms(input, output_weight, 1);
  ASSERT_EQ(whole.sizes(), at::IntArrayRef({1, 1, kTokens}));
  for (int token = 0; token < kTokens; ++token)
    EXPECT_NEAR(whole[0][0][token].item<double>(),
                length(input.v.select(0, 0).select(1, token).flatten(), output_weight, 0), 1e-4);
}

TEST(ValueNorms, AreZeroForMaskedTokensWhateverTheyHold) {
  AttentionInput input;
  input.q = input.k = input.v = at::rand({1, kHeads, kTokens, kWidth});
  input.v.select(2, 4).fill_(std::numeric_limits<float>::quiet_NaN());
  input.mask = at::tensor({1, 1, 1, 1, 0}).to(at::kBool).unsqueeze(0);
  const at::Tensor norms = value_norms(input, at::randn({kHeads * kWidth, kHeads * kWidth}), kHeads);
  EXPECT_EQ(norms.select(2, 4).abs().max().item<double>(), 0.0);
  EXPECT_GT(norms.slice(2, 0, 4).min().item<double>(), 0.0);
}

} // namespace
} // namespace hydrascope
