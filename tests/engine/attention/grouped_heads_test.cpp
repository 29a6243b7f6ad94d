// Grouped heads: keys and values, and the maps of keys, once for several heads of queries.
#include <cctype>
#include <string>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "tests/engine/attention/inputs.h"
#include "tests/engine/attention/reference.h"

namespace hydrascope {
namespace {

using testing_inputs::Case, testing_inputs::describe, testing_inputs::make_input,
    testing_inputs::moved_parameters, testing_inputs::normal, testing_inputs::relative_error;

AttentionInput grouped(const Case& shape, const std::int64_t key_heads) {
  AttentionInput input = make_input(shape, 7);
  input.key_heads = key_heads;
  for (at::Tensor* x : {&input.k, &input.v})
    *x = for_each_head(one_of_each_group(*x, key_heads), shape.heads);
  return input;
}

class GroupedHeads : public testing::TestWithParam<reference::Row> {};

TEST_P(GroupedHeads, GiveTheReferences) {
  const auto kernel = make_kernel(parse_kernel_spec(GetParam().spec));
  for (const std::int64_t key_heads : {1, 2})
    for (Case shape : {Case{2, 4, 70, 8, true}, Case{1, 4, 33, 16}}) {
      for (const bool causal : {false, true}) {
        shape.causal = causal;
        AttentionInput input = grouped(shape, key_heads);
        if (!kernel->supports(shape_of(input)).ok) continue;
        const KernelParameters parameters = moved_parameters(*kernel, shape, 70, key_heads);
        const reference::Result expected = GetParam().compute(input, parameters, input.v);
        for (const bool gradients : {false, true}) {
          SCOPED_TRACE(describe(shape) + (gradients ? " with gradients" : ""));
          const at::AutoGradMode mode(gradients);
          input.q.requires_grad_(gradients);
          EXPECT_LT(relative_error(kernel->run(input, parameters).out, expected.out), 2e-5);
          EXPECT_LT(relative_error(kernel->weights(input, parameters), expected.weights), 2e-5);
        }
        const at::NoGradGuard no_gradients;
        const at::Tensor g = normal(input.q.sizes(), 74);
        const at::Tensor of_all = GetParam().compute(input, parameters, g).contributions.sum(1);
        EXPECT_LT(
            (kernel->contributions(input, parameters, std::nullopt, g) - of_all).abs().max().item<double>(),
            1e-4 * (1 + of_all.abs().max().item<double>()));
        const auto features = features_of(*kernel, input, parameters, {}, {});
        EXPECT_TRUE(!features || features->query.size(1) == features->key.size(1));
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Registry, GroupedHeads, testing::ValuesIn(reference::rows()),
                         [](const auto& instance) {
                           std::string name = instance.param.spec;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

TEST(GroupedMaps, AreOnePerKeyValueHead) {
  const HeadShape shape{6, 8, 2};
  const auto size = [&](const char* spec, const char* name) {
    return make_kernel(parse_kernel_spec(spec))->initial_parameters(shape).at(name).size(0);
  };
  for (const char* spec : {"hedgehog", "hedgehog-softmax", "t2r"}) {
    EXPECT_EQ(size(spec, "query_map.weight"), 6) << spec;
    EXPECT_EQ(size(spec, "key_map.weight"), 2) << spec;
    EXPECT_EQ(size(spec, "key_map.bias"), 2) << spec;
  }
  EXPECT_EQ(size("hedgehog:shared=1", "query_map.weight"), 2);
  EXPECT_EQ(size("phi:hedgehog", "query.W"), 6);
  EXPECT_EQ(size("phi:hedgehog", "key.W"), 2);

  const auto kernel = make_kernel({"hedgehog", {}});
  const auto maps = kernel->leading_maps(shape, kernel->initial_parameters(shape));
  ASSERT_TRUE(maps.has_value());
  EXPECT_EQ(maps->query_weight.size(0), 6);
  EXPECT_EQ(maps->key_weight.size(0), 2);
  const auto shared = make_kernel({"hedgehog", {{"shared", "1"}}});
  EXPECT_FALSE(shared->leading_maps(shape, shared->initial_parameters(shape)).has_value());
}

TEST(GroupedHeadsOf, LinearKernelsCostLess) {
  AttentionShape shape{.heads = 6, .tokens = 100, .head_width = 8};
  const auto kernel = make_kernel({"exp-t1", {}});
  const double own = kernel->cost(shape).multiply_accumulates;
  shape.key_heads = 2;
  // Σ φ(k) vᵀ of two heads instead of six.
  EXPECT_EQ(own - kernel->cost(shape).multiply_accumulates, 4.0 * 100 * 8 * 8);
}

TEST(GroupedMaps, OfAnotherNumberOfHeadsAreRefused) {
  const AttentionInput input = grouped({1, 4, 5, 8}, 2);
  const auto kernel = make_kernel({"hedgehog", {}});
  EXPECT_THROW(kernel->run(input, kernel->initial_parameters({4, 8})), UsageError);
  AttentionInput odd = input;
  odd.key_heads = 3;
  EXPECT_THROW(kernel->run(odd, {}), UsageError);
}

} // namespace
} // namespace hydrascope
