// Decoding by state against the parallel causal form, for every kernel that has one.
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include "engine/attention/interface/cross_attention.h"
#include "engine/attention/interface/decoding.h"
#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"
#include "tests/engine/attention/inputs.h"
#include "tests/engine/attention/reference.h"

namespace hydrascope {
namespace {

using testing_inputs::make_input, testing_inputs::moved_parameters, testing_inputs::relative_error;

constexpr std::int64_t heads = 4, width = 16;

// A causal text; with grouped heads every H/key_heads heads have the keys and values of one.
AttentionInput text(const std::int64_t tokens, const std::int64_t key_heads, const double scale = 1,
                    const at::ScalarType type = at::kFloat, const std::int64_t batch = 2) {
  AttentionInput input = make_input({batch, heads, tokens, width, false, true}, 7, scale);
  input.key_heads = key_heads;
  for (at::Tensor* x : {&input.k, &input.v}) *x = for_each_head(one_of_each_group(*x, key_heads), heads);
  for (at::Tensor* x : {&input.q, &input.k, &input.v, &input.layer_input}) *x = x->to(type);
  return input;
}

AttentionInput part_of(const AttentionInput& input, const std::int64_t first, const std::int64_t last) {
  AttentionInput part = input;
  for (at::Tensor* x : {&part.q, &part.k, &part.v}) *x = x->slice(2, first, last);
  part.layer_input = input.layer_input.slice(1, first, last);
  return part;
}

AttentionShape decoded_shape(const AttentionInput& input) {
  AttentionShape shape = shape_of(input);
  shape.tokens = 1;
  return shape;
}

// The outputs of the tokens from `first` on: in one step each of `steps` tokens, then one by one.
at::Tensor decoded(DecodingState& state, const AttentionInput& input, std::int64_t first,
                   const std::vector<std::int64_t>& steps) {
  std::vector<at::Tensor> parts;
  for (const std::int64_t step : steps) {
    parts.push_back(state.extend(part_of(input, first, first + step)));
    first += step;
  }
  for (; first < input.q.size(2); ++first) parts.push_back(state.extend(part_of(input, first, first + 1)));
  EXPECT_EQ(state.tokens(), input.q.size(2));
  return at::cat(parts, 2);
}

KernelParameters parameters_for(const Kernel& kernel, const std::int64_t key_heads,
                                const at::ScalarType type) {
  KernelParameters parameters = moved_parameters(kernel, {2, heads, 1, width}, 70, key_heads);
  for (auto& [name, parameter] : parameters) parameter = parameter.to(type);
  return parameters;
}

class Decoding : public testing::TestWithParam<reference::Row> {
protected:
  void SetUp() override {
    const AttentionInput input = text(1, heads);
    if (!kernel->decodes(shape_of(input)).ok) GTEST_SKIP() << kernel->decodes(shape_of(input)).reason;
  }

  const at::NoGradGuard no_gradients;
  std::unique_ptr<Kernel> kernel = make_kernel(parse_kernel_spec(GetParam().spec));
};

TEST_P(Decoding, IsTheParallelFormOver2048Tokens) {
  for (const auto& [key_heads, tokens] : {std::pair{heads / 2, std::int64_t{2048}}, {heads, 300}}) {
    SCOPED_TRACE(key_heads);
    const AttentionInput input = text(tokens, key_heads, 1, at::kFloat, 1);
    const KernelParameters parameters = parameters_for(*kernel, key_heads, at::kFloat);
    const auto state = kernel->decoding(decoded_shape(input), parameters);
    const at::Tensor out = decoded(*state, input, 0, {100, 7}), expected = kernel->run(input, parameters).out;
    EXPECT_EQ(out.scalar_type(), expected.scalar_type());
    EXPECT_LT(relative_error(out, expected), 1e-4);
  }
}

// Grouped heads, the key/value heads alone, by the composed path, which is the only one in double precision.
TEST_P(Decoding, IsTheParallelFormInOtherTypes) {
  for (const auto& [type, tolerance] : {std::pair{at::kDouble, 1e-11}, {at::kBFloat16, 2e-2}}) {
    SCOPED_TRACE(toString(type));
    const AttentionInput input = text(150, 2, 1, type);
    const KernelParameters parameters =
        parameters_for(*kernel, 2, type == at::kDouble ? at::kDouble : at::kFloat);
    const auto state = kernel->decoding(decoded_shape(input), parameters);
    AttentionInput grouped = input;
    grouped.k = one_of_each_group(input.k, 2);
    grouped.v = one_of_each_group(input.v, 2);
    EXPECT_LT(relative_error(decoded(*state, grouped, 0, {1, 40, 30}), kernel->run(input, parameters).out),
              tolerance);
  }
}

TEST_P(Decoding, IsExactForLargeInputs) {
  if (!GetParam().exponential) GTEST_SKIP() << "not an exponential kernel";
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const AttentionInput input = text(150, 2, 100, type);
    const KernelParameters parameters = parameters_for(*kernel, 2, type);
    const auto state = kernel->decoding(decoded_shape(input), parameters);
    const reference::Result expected = GetParam().compute(input, parameters, input.v);
    // A float32 exponent of 10⁴ is right to 10⁻³, and that is what a weight can be off by.
    EXPECT_LT(relative_error(decoded(*state, input, 0, {30, 50, 3}), expected.out),
              type == at::kFloat ? 4e-3 : 1e-9);
  }
}

TEST_P(Decoding, ContinuesASavedStateBitForBit) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const AttentionInput input = text(230, 2, 1, type);
    const KernelParameters parameters = parameters_for(*kernel, 2, type);
    const AttentionShape shape = decoded_shape(input);
    const auto state = kernel->decoding(shape, parameters);
    decoded(*state, part_of(input, 0, 140), 0, {100, 20});
    const auto copy = state->clone();
    const DecodingTensors saved = state->tensors();
    const at::Tensor expected = decoded(*state, input, 140, {1, 20, 30});
    EXPECT_TRUE(at::equal(decoded(*copy, input, 140, {1, 20, 30}), expected));
    const auto restored = kernel->decoding(shape, parameters, saved);
    EXPECT_EQ(restored->tokens(), 140);
    EXPECT_TRUE(at::equal(decoded(*restored, input, 140, {1, 20, 30}), expected));
    EXPECT_EQ(restored->bytes(), state->bytes());
  }
}

TEST_P(Decoding, TakesConstantMemoryUnlessKeysAreKept) {
  const AttentionInput input = text(300, 2);
  const auto state = kernel->decoding(decoded_shape(input), parameters_for(*kernel, 2, at::kFloat));
  std::vector<std::int64_t> bytes;
  for (std::int64_t first = 0; first < 300; first += 100) {
    state->extend(part_of(input, first, first + 100));
    bytes.push_back(state->bytes());
  }
  const bool all_keys = kernel->info().family == KernelFamily::exact || GetParam().spec == "phi:softmax";
  const std::int64_t own_heads = kernel->weight_heads(shape_of(input));
  const std::int64_t kept_width = own_heads == heads ? 2 * width : heads * width;
  constexpr std::int64_t sequences = 2, keys_and_values = 2, bytes_of_float = sizeof(float);
  const auto bytes_of = [&](const std::int64_t tokens) {
    return sequences * keys_and_values * kept_width * tokens * bytes_of_float;
  };
  if (all_keys) {
    EXPECT_EQ(bytes.back(), bytes_of(300));
  } else if (kernel->info().family == KernelFamily::window) {
    EXPECT_LE(bytes.back(), bytes_of(64)); // those of a block of tokens are forgotten with it
  } else {
    EXPECT_EQ(bytes.back(), bytes[1]);
  }
}

TEST_P(Decoding, RefusesOtherTokens) {
  const AttentionInput input = text(5, heads);
  const KernelParameters parameters = parameters_for(*kernel, heads, at::kFloat);
  const auto state = kernel->decoding(decoded_shape(input), parameters);
  AttentionInput wide = input, half = input, padded = input;
  wide.k = wide.k.slice(3, 0, 8);
  half.v = half.v.to(at::kBFloat16);
  padded.mask = at::ones({2, 5}, at::kBool);
  padded.mask.select(1, 4).fill_(false);
  for (const AttentionInput* other : {&wide, &half, &padded}) EXPECT_THROW(state->extend(*other), UsageError);
  padded.mask.fill_(true);
  state->extend(padded);
  DecodingTensors saved = state->tensors();
  saved.begin()->second = saved.begin()->second.unsqueeze(0);
  EXPECT_THROW(kernel->decoding(decoded_shape(input), parameters, saved), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Registry, Decoding, testing::ValuesIn(reference::rows()), [](const auto& instance) {
  std::string name = instance.param.spec;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

TEST(DecodingOf, CosformerNeedsAFixedLength) {
  const AttentionInput input = text(5, heads);
  try {
    make_kernel({"cosformer", {}})->decoding(decoded_shape(input), {});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cosformer:m="));
  }
  const auto kernel = make_kernel({"cosformer", {{"m", "7"}}});
  const auto state = kernel->decoding(decoded_shape(input), {});
  state->extend(input);
  EXPECT_THROW(state->extend(part_of(input, 0, 3)), UsageError);
  state->extend(part_of(input, 0, 2));
  EXPECT_EQ(state->tokens(), 7);
}

// What is kept grows from 256 tokens to the window, then goes round.
TEST(DecodingOf, WindowsOfMoreTokensThanAreReserved) {
  const at::NoGradGuard no_gradients;
  for (const char* spec : {"local-window:w=300", "local-window:w=300,mode=blocks", "hedgehog-window:w=300"}) {
    SCOPED_TRACE(spec);
    const auto kernel = make_kernel(parse_kernel_spec(spec));
    const AttentionInput input = text(800, 2, 1, at::kFloat, 1);
    const KernelParameters parameters = parameters_for(*kernel, 2, at::kFloat);
    const auto state = kernel->decoding(decoded_shape(input), parameters);
    EXPECT_LT(relative_error(decoded(*state, input, 0, {200, 90, 350}), kernel->run(input, parameters).out),
              1e-4);
  }
}

// A window wider than the sequence takes no memory for the tokens that are not there, and is softmax.
TEST(DecodingOf, WindowsWiderThanTheSequence) {
  const at::NoGradGuard no_gradients;
  const AttentionInput input = text(70, 2);
  const at::Tensor expected = make_kernel({"softmax", {}})->run(input, {}).out;
  for (const char* spec : {"local-window:w=2000000000", "based:w=2000000000"}) {
    SCOPED_TRACE(spec);
    const auto kernel = make_kernel(parse_kernel_spec(spec));
    const auto state = kernel->decoding(decoded_shape(input), {});
    EXPECT_LT(relative_error(decoded(*state, input, 0, {30, 7}), expected), 1e-5);
    EXPECT_LT(relative_error(kernel->run(input, {}).out, expected), 1e-5);
    AttentionInput encoded = input;
    encoded.causal = false;
    EXPECT_LT(
        relative_error(kernel->run(encoded, {}).out, make_kernel({"softmax", {}})->run(encoded, {}).out),
        1e-5);
  }
}

TEST(DecodingOf, ScoresOfOnesOwn) {
  const at::NoGradGuard no_gradients;
  const auto kernel = make_kernel(kernel_of_source("decoded",
                                                   "normalised = True\n"
                                                   "def score(q, k):\n"
                                                   "    return torch.relu(q @ k.transpose(-1, -2)) + 0.1\n"));
  const AttentionInput input = text(120, 2);
  const auto state = kernel->decoding(decoded_shape(input), {});
  EXPECT_LT(relative_error(decoded(*state, input, 0, {50, 7}), kernel->run(input, {}).out), 1e-5);
  const auto restored = kernel->decoding(decoded_shape(input), {}, state->tensors());
  EXPECT_TRUE(at::equal(restored->extend(part_of(input, 0, 1)), state->extend(part_of(input, 0, 1))));
}

TEST(DecodingOf, MapsThatKnowTheTokensPlace) {
  const at::NoGradGuard no_gradients;
  const auto kernel =
      make_kernel(kernel_of_source("placed", "def phi(x, i):\n    return torch.relu(x) + 1 / i\n"));
  const AttentionInput input = text(90, 2);
  const auto state = kernel->decoding(decoded_shape(input), {});
  EXPECT_LT(relative_error(decoded(*state, input, 0, {50, 7}), kernel->run(input, {}).out), 1e-5);
  const auto relative =
      make_kernel(kernel_of_source("relative", "def phi(x, i, n):\n    return torch.relu(x) + i / n\n"));
  const Support support = relative->decodes(decoded_shape(input));
  EXPECT_FALSE(support.ok);
  EXPECT_THAT(support.reason, testing::HasSubstr("n, the number of tokens"));
}

TEST(DecodingOf, CrossAttentionIsRefused) {
  const auto kernel = for_cross_attention(make_kernel({"softmax", {}}));
  EXPECT_THROW(kernel->decoding(decoded_shape(text(5, heads)), {}), UsageError);
}

} // namespace
} // namespace hydrascope
