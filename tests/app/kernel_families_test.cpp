// Families of kernels, where trained parameters exist, kernels with heads of their own, and differences of
// equal maps.
#include <algorithm>

#include <gtest/gtest.h>

#include "app/views/adapter_view.h"
#include "app/views/selection.h"
#include "app/views/token_map.h"
#include "app/views/weights_view.h"
#include "engine/base/error.h"

namespace hydrascope::app::tests {
namespace {

TEST(Registry, FamiliesHoldWhatTheirNamesSay) {
  for (const KernelInfo& info : kernel_infos()) {
    EXPECT_EQ(info.exact_softmax, info.family == KernelFamily::exact) << info.name;
    EXPECT_EQ(info.family == KernelFamily::hydra, !info.normalised) << info.name;
    if (info.normalised && info.family != KernelFamily::exact && info.family != KernelFamily::window) {
      EXPECT_EQ(info.family == KernelFamily::trained, info.trainable) << info.name;
    }
  }
}

ParameterMark mark_of(const std::vector<std::vector<ParameterMark>>& marks, std::size_t layer,
                      const std::string& kernel) {
  const auto found = std::ranges::find(kernel_infos(), kernel, &KernelInfo::name);
  return marks.at(layer).at(static_cast<std::size_t>(found - kernel_infos().begin()));
}

TEST(ParameterMarks, SayWhereTrainedParametersExist) {
  RunResult run;
  run.layers.resize(2);
  AdapterInfo bundled;
  bundled.layers = {{.layer = 1, .kernel = {"hydra-cosine", {}}}};
  run.available_adapters = std::make_shared<const std::vector<AdapterInfo>>(std::vector{bundled});
  auto marks = parameter_marks(run, {});
  EXPECT_EQ(mark_of(marks, 1, "hydra-cosine"), ParameterMark::trained);
  EXPECT_EQ(mark_of(marks, 0, "hydra-cosine"), ParameterMark::untrained);
  EXPECT_EQ(mark_of(marks, 1, "softmax"), ParameterMark::none_needed);
  EXPECT_TRUE(has_trained(marks, KernelFamily::hydra));
  EXPECT_FALSE(has_trained(marks, KernelFamily::trained));
  EXPECT_FALSE(has_trained(marks, KernelFamily::exact));
  marks = parameter_marks(run, {.automatic = false, .files = {}});
  EXPECT_EQ(mark_of(marks, 1, "hydra-cosine"), ParameterMark::untrained) << "adapters are off";
  run.adapters = {bundled};
  marks = parameter_marks(run, {.automatic = false, .files = {}});
  EXPECT_EQ(mark_of(marks, 1, "hydra-cosine"), ParameterMark::trained) << "it is in use";
  AdapterInfo both;
  both.role = "schedule";
  both.layers = {{.layer = 0, .kernel = {"poly-nl", {}}}, {.layer = 1, .kernel = {"poly-nl", {}}}};
  run.adapters = {both};
  EXPECT_EQ(mark_of(parameter_marks(run, {}), 0, "poly-nl"), ParameterMark::trained_together);
  EXPECT_TRUE(has_trained(parameter_marks(run, {}), KernelFamily::hydra));
  both.layers.front().kernel = {"softmax", {}};
  run.adapters = {both};
  EXPECT_EQ(mark_of(parameter_marks(run, {}), 1, "poly-nl"), ParameterMark::trained) << "it needs no other";
}

TEST(OwnHeads, ThatAKernelLacksHaveNoWeights) {
  WeightsResult weights;
  weights.kernel = {"linear-cosine", {{"heads", "2"}}};
  weights.rows = {0, 1};
  weights.weights = {{2, 2, 2}, {1, 0, 0, 1, 0.5f, 0.5f, 0.25f, 0.75f}};
  const HeadChoice one{.head = 5}, some{.head = std::nullopt, .subset = {4, 5}};
  for (const HeadChoice& lacked : {one, some}) {
    EXPECT_THROW(head_weights(weights, lacked), UsageError);
    EXPECT_TRUE(row_weights(weights, lacked, 0).empty());
    EXPECT_FALSE(weights_entropy(weights, lacked).has_value());
    EXPECT_EQ(existing_heads(lacked, 2).text(), "head 1");
  }
  const HeadChoice partly{.head = std::nullopt, .subset = {1, 4}};
  EXPECT_EQ(row_weights(weights, partly, 1), (std::vector<double>{0.25, 0.75}));
  EXPECT_EQ(existing_heads(partly, 2).subset, std::vector<int>{1});
  EXPECT_EQ(existing_heads({.head = std::nullopt}, 2).text(), "mean of heads");
  EXPECT_EQ(existing_heads({.head = 1}, 2).text(), "head 1");
}

TokenMap map_of(std::vector<float> values) {
  TokenMap map;
  map.values = {{1, static_cast<std::int64_t>(values.size())}, std::move(values)};
  return map;
}

TEST(Difference, OfEqualMapsSaysSoAndHasNoValues) {
  const TokenMap same = map_difference(map_of({0.1f, 1, 0}), map_of({0.1f, 1 + 1e-6f, 0}));
  EXPECT_TRUE(same.same);
  EXPECT_TRUE(same.values.empty());
  EXPECT_EQ(same.note, same_note);
  const TokenMap other = map_difference(map_of({0.1f, 1, 0}), map_of({0.1f, 1, 0.01f}));
  EXPECT_FALSE(other.same);
  EXPECT_EQ(other.values.values.size(), 3U);
  EXPECT_NE(other.note, same_note);
}

} // namespace
} // namespace hydrascope::app::tests
