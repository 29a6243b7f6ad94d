// Runs with muted heads: nothing of them reaches W_o, nothing else changes, and no cache mixes them up.
#include "engine/run/muted_heads.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"

namespace hydrascope {
namespace {

const char* const kText = "the cat sat on the warm mat";
constexpr std::int64_t kTokens = 8;
constexpr std::size_t kCacheBytes = std::size_t{1} << 20;
constexpr std::int64_t kHeadWidth = FakeModel::kWidth / FakeModel::kHeads;

RunRequest muting(std::vector<HeadIndex> heads, const std::string& layers = "3=hydra-cosine") {
  RunRequest request = fake_request(kText, layers);
  request.muted_heads = std::move(heads);
  return request;
}

std::shared_ptr<const FakeModel> fake() { return std::make_shared<const FakeModel>(FakeOptions{}); }

// The model whose W_o reads nothing of these heads.
std::shared_ptr<const FakeModel> deaf(const FakeModel& model, const std::vector<HeadIndex>& heads) {
  std::map<std::string, at::Tensor> replaced;
  for (const HeadIndex& each : heads) {
    const std::string name = fmt::format("encoder.layer.{}.output.weight", each.layer);
    if (!replaced.contains(name)) replaced[name] = model.parameter(name).clone();
    replaced[name].narrow(1, each.head * kHeadWidth, kHeadWidth).fill_(0.0);
  }
  return std::static_pointer_cast<const FakeModel>(model.with_parameters(replaced, {}, 0));
}

TEST(MutedHeadsText, IsReadAndWritten) {
  const std::vector<HeadIndex> expected = {{3, 0}, {3, 5}, {7, 0}, {7, 1}, {7, 2}, {7, 3}, {7, 4}, {7, 5}};
  EXPECT_EQ(parse_muted_heads("3:5,7,3:0,3:5", 12, 6), expected);
  EXPECT_EQ(muted_heads_text(expected, 6), "3:0,3:5,7");
  EXPECT_EQ(muted_heads_text({}, 6), "");
  EXPECT_THROW(parse_muted_heads("3:6", 12, 6), UsageError);
  EXPECT_THROW(parse_muted_heads("12", 12, 6), UsageError);
  for (const char* odd : {"", "3:", ":1", "3:0,", "3:0:1", "-1", "a", "3 :0"})
    EXPECT_THROW(parse_muted_heads(odd, 12, 6), UsageError) << odd;
}

TEST(MutedHeadsText, HeadsOfAnotherSplitAreSilentWhereAllTheirFeaturesAre) {
  EXPECT_THAT(heard_heads(std::vector{1}, 3, 3), testing::ElementsAre(true, false, true));
  EXPECT_THAT(heard_heads(std::vector{0, 1}, 4, 2), testing::ElementsAre(false, true));
  EXPECT_THAT(heard_heads(std::vector{0}, 4, 2), testing::ElementsAre(true, true));
  EXPECT_THAT(heard_heads(std::vector{0}, 2, 4), testing::ElementsAre(false, false, true, true));
  EXPECT_THAT(heard_heads(std::vector{0}, 2, 3), testing::ElementsAre(false, true, true));
  EXPECT_THAT(heard_heads({}, 2, 1), testing::ElementsAre(true));
}

class MutedHeads : public testing::TestWithParam<std::string> {};

TEST_P(MutedHeads, EqualAModelWhoseOutputProjectionReadsNothingOfThem) {
  const auto model = fake();
  const std::vector<HeadIndex> heads = {{1, 1}, {2, 0}};
  const std::string layers = "0-3=" + GetParam();
  Runner muted(kCacheBytes, fake_source(model)), reference(kCacheBytes, fake_source(deaf(*model, heads)));
  RunRequest request = muting(heads, layers), same = fake_request(kText, layers);
  for (RunRequest* each : {&request, &same}) each->asks.focus_layers = {0, 1, 2, 3};
  const auto result = muted.run(request);
  const auto expected = reference.run(same);
  EXPECT_THAT(result->logits.values, testing::Pointwise(testing::FloatNear(1e-5F), expected->logits.values));
  for (std::size_t layer = 0; layer < 4; ++layer) {
    EXPECT_THAT(result->focus[layer].contributions.values,
                testing::Pointwise(testing::FloatNear(1e-5F), expected->focus[layer].contributions.values));
    EXPECT_NEAR(result->focus[layer].total, expected->focus[layer].total, 1e-5);
  }
  EXPECT_EQ(result->muted_heads, heads);
  EXPECT_EQ(result->notes.back(), "2 heads muted");
}

TEST_P(MutedHeads, AreNotMistakenForOthersInTheCache) {
  const auto model = fake();
  const std::string layers = "0-3=" + GetParam();
  Runner warm(kCacheBytes, fake_source(model));
  const auto none = warm.run(muting({}, layers));
  const auto first = warm.run(muting({{2, 0}}, layers));
  const auto second = warm.run(muting({{2, 1}}, layers));
  EXPECT_EQ(warm.run(muting({}, layers))->logits.values, none->logits.values);
  EXPECT_NE(first->logits.values, none->logits.values);
  EXPECT_NE(first->logits.values, second->logits.values);
  Runner fresh(kCacheBytes, fake_source(model));
  EXPECT_EQ(fresh.run(muting({{2, 1}}, layers))->logits.values, second->logits.values);
  // Blocks before the muted head are the same as ever.
  EXPECT_TRUE(first->layers[0].cached && first->layers[1].cached);
  EXPECT_FALSE(first->layers[2].cached);
}

INSTANTIATE_TEST_SUITE_P(Kernels, MutedHeads,
                         testing::Values("softmax", "hydra-cosine", "hydra-cosine-ln", "hedgehog", "elu"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(MutedHeadsRun, ComparesWithNothingMutedAndNothingHidden) {
  const auto model = fake();
  Runner runner(kCacheBytes, fake_source(model));
  const auto plain = runner.run(muting({}));
  EXPECT_FALSE(plain->whole.has_value());
  const auto muted = runner.run(muting({{1, 0}}));
  ASSERT_TRUE(muted->whole.has_value());
  EXPECT_EQ(muted->whole->predictions.front().probability, plain->predictions.front().probability);
  EXPECT_LT(muted->whole->similarity, 1.0);
  RunRequest both = muting({{1, 0}});
  both.hidden_tokens = {2};
  const auto result = runner.run(both);
  EXPECT_EQ(result->whole->predictions.front().probability, plain->predictions.front().probability);
  EXPECT_NE(result->logits.values, muted->logits.values);
}

TEST(MutedHeadsRun, LeavesTheTeacherForcedRunAsItIs) {
  Runner runner(kCacheBytes, fake_source(fake()));
  RunRequest request = muting({});
  request.asks.head_tables = {
      {"entropy", KernelSpec{"elu", {}}}, {"kl", KernelSpec{"elu", {}}}, {"change", KernelSpec{"elu", {}}}};
  request.asks.weights = {{3, {KernelSpec{"softmax", {}}}, {}, true},
                          {3, {KernelSpec{"softmax", {}}}, {}, false}};
  const auto plain = runner.run(request);
  request.muted_heads = {{0, 0}, {1, 1}};
  const auto muted = runner.run(request);
  ASSERT_EQ(muted->tables.size(), plain->tables.size());
  for (std::size_t i = 0; i < plain->tables.size(); ++i)
    EXPECT_EQ(muted->tables[i].values.values, plain->tables[i].values.values);
  EXPECT_EQ(muted->weights[0].weights.values, plain->weights[0].weights.values);
  EXPECT_NE(muted->weights[1].weights.values, plain->weights[1].weights.values);
}

TEST(MutedHeadsRun, LeavesThemOutOfRollout) {
  Runner runner(kCacheBytes, fake_source(fake()));
  RunRequest all = muting({}, {}), one = all;
  all.asks.rollout = one.asks.rollout = RolloutAsk{};
  for (int layer = 0; layer < 4; ++layer) {
    all.muted_heads.push_back({layer, 0});
    all.muted_heads.push_back({layer, 1});
  }
  const auto nothing = runner.run(all);
  for (std::int64_t row = 0; row < kTokens; ++row)
    for (std::int64_t key = 0; key < kTokens; ++key)
      EXPECT_EQ(nothing->rollout->weights.values[static_cast<std::size_t>(row * kTokens + key)],
                row == key ? 1.0F : 0.0F);
  // With head 0 muted in the last layer, fusing all heads there is head 1 alone.
  one.muted_heads = {{3, 0}};
  RunRequest head = one;
  const auto fused = runner.run(one);
  for (int layer = 0; layer < 3; ++layer) head.muted_heads.push_back({layer, 0});
  std::sort(head.muted_heads.begin(), head.muted_heads.end());
  const auto everywhere = runner.run(head);
  RunRequest alone = muting(head.muted_heads, {});
  alone.asks.rollout = RolloutAsk{.heads = {1}};
  EXPECT_EQ(runner.run(alone)->rollout->weights.values, everywhere->rollout->weights.values);
  EXPECT_NE(fused->rollout->weights.values, everywhere->rollout->weights.values);
}

TEST(MutedHeadsRun, RefusesHeadsThatDoNotExist) {
  Runner runner(kCacheBytes, fake_source(fake()));
  const auto message = [&](std::vector<HeadIndex> heads) -> std::string {
    try {
      runner.run(muting(std::move(heads)));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(message({{4, 0}}), testing::HasSubstr("layer 4"));
  EXPECT_THAT(message({{1, 2}}), testing::HasSubstr("muted head 2 of layer 1"));
  EXPECT_THAT(message({{-1, 0}}), testing::HasSubstr("layer -1"));
}

} // namespace
} // namespace hydrascope
