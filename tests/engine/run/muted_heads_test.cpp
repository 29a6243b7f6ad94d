// Runs with muted heads: nothing of them reaches W_o, nothing else changes, and no cache mixes them up.
#include "engine/run/run.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"
#include "tests/engine/run/read_result.h"

namespace hydrascope {
namespace {

const char* const kText = "the cat sat on the warm mat";
constexpr std::int64_t kTokens = 8;
constexpr std::size_t kCacheBytes = std::size_t{1} << 20;
constexpr std::int64_t kHeadWidth = FakeModel::kWidth / FakeModel::kHeads;

RunRequest muting(std::vector<HeadIndex> heads, const std::string& layers = "3=hydra-cosine") {
  RunRequest request = fake_request(kText, layers);
  request.muted_heads = std::move(heads);
  request.quantities = {LogitsKey{}};
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
  EXPECT_THAT(unmuted_heads(std::vector{1}, 3, 3), testing::ElementsAre(true, false, true));
  EXPECT_THAT(unmuted_heads(std::vector{0, 1}, 4, 2), testing::ElementsAre(false, true));
  EXPECT_THAT(unmuted_heads(std::vector{0}, 4, 2), testing::ElementsAre(true, true));
  EXPECT_THAT(unmuted_heads(std::vector{0}, 2, 4), testing::ElementsAre(false, false, true, true));
  EXPECT_THAT(unmuted_heads(std::vector{0}, 2, 3), testing::ElementsAre(false, true, true));
  EXPECT_THAT(unmuted_heads({}, 2, 1), testing::ElementsAre(true));
}

class MutedHeads : public testing::TestWithParam<std::string> {};

TEST_P(MutedHeads, EqualAModelWhoseOutputProjectionReadsNothingOfThem) {
  const auto model = fake();
  const std::vector<HeadIndex> heads = {{1, 1}, {2, 0}};
  const std::string layers = "0-3=" + GetParam();
  Runner muted(kCacheBytes, fake_source(model)), reference(kCacheBytes, fake_source(deaf(*model, heads)));
  RunRequest request = muting(heads, layers), same = fake_request(kText, layers);
  for (RunRequest* each : {&request, &same})
    each->quantities = {LogitsKey{}, FocusKey{0}, FocusKey{1}, FocusKey{2}, FocusKey{3}};
  const auto result = muted.run(request);
  const auto expected = reference.run(same);
  EXPECT_THAT(test::logits(*result), testing::Pointwise(testing::FloatNear(1e-5F), test::logits(*expected)));
  for (int layer = 0; layer < 4; ++layer) {
    const FocusResult& found = test::read(*result, FocusKey{layer});
    const FocusResult& reference_map = test::read(*expected, FocusKey{layer});
    EXPECT_THAT(found.contributions.values,
                testing::Pointwise(testing::FloatNear(1e-5F), reference_map.contributions.values));
    EXPECT_NEAR(found.total, reference_map.total, 1e-5);
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
  EXPECT_EQ(test::logits(*warm.run(muting({}, layers))), test::logits(*none));
  EXPECT_NE(test::logits(*first), test::logits(*none));
  EXPECT_NE(test::logits(*first), test::logits(*second));
  Runner fresh(kCacheBytes, fake_source(model));
  EXPECT_EQ(test::logits(*fresh.run(muting({{2, 1}}, layers))), test::logits(*second));
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
  EXPECT_NE(test::logits(*result), test::logits(*muted));
}

TEST(MutedHeadsRun, LeavesTheTeacherForcedRunAsItIs) {
  Runner runner(kCacheBytes, fake_source(fake()));
  RunRequest request = muting({});
  const WeightsKey forced{.layer = 3, .kernel = KernelSpec{"softmax", {}}, .teacher_forced = true};
  const WeightsKey own{.layer = 3, .kernel = KernelSpec{"softmax", {}}};
  request.quantities = {forced, own};
  for (const char* quantity : {"entropy", "kl", "change"})
    request.quantities.add(HeadTableKey{quantity, KernelSpec{"elu", {}}});
  const auto plain = runner.run(request);
  request.muted_heads = {{0, 0}, {1, 1}};
  const auto muted = runner.run(request);
  const auto tables = plain->quantities.all<HeadTableKey>();
  ASSERT_EQ(muted->quantities.all<HeadTableKey>().size(), tables.size());
  for (const auto& [key, table] : tables)
    EXPECT_EQ(test::read(*muted, key).values.values, table->values.values);
  const auto weights = [](const RunResult& run, const WeightsKey& key) {
    return test::read(run, key).weights.values;
  };
  EXPECT_EQ(weights(*muted, forced), weights(*plain, forced));
  EXPECT_NE(weights(*muted, own), weights(*plain, own));
}

TEST(MutedHeadsRun, LeavesThemOutOfRollout) {
  Runner runner(kCacheBytes, fake_source(fake()));
  RunRequest all = muting({}, {}), one = all;
  all.quantities = one.quantities = {RolloutKey{}};
  const auto rollout = [&](const RunResult& run, const RolloutKey& key = {}) {
    return test::read(run, key).weights.values;
  };
  for (int layer = 0; layer < 4; ++layer) {
    all.muted_heads.push_back({layer, 0});
    all.muted_heads.push_back({layer, 1});
  }
  const auto nothing = runner.run(all);
  const std::vector<float> residual = rollout(*nothing);
  for (std::int64_t row = 0; row < kTokens; ++row)
    for (std::int64_t key = 0; key < kTokens; ++key)
      EXPECT_EQ(residual[static_cast<std::size_t>(row * kTokens + key)], row == key ? 1.0F : 0.0F);
  // With head 0 muted in the last layer, fusing all heads there is head 1 alone.
  one.muted_heads = {{3, 0}};
  RunRequest head = one;
  const auto fused = runner.run(one);
  for (int layer = 0; layer < 3; ++layer) head.muted_heads.push_back({layer, 0});
  std::sort(head.muted_heads.begin(), head.muted_heads.end());
  const auto everywhere = runner.run(head);
  RunRequest alone = muting(head.muted_heads, {});
  const RolloutKey head_one{.heads = {1}};
  alone.quantities = {head_one};
  EXPECT_EQ(rollout(*runner.run(alone), head_one), rollout(*everywhere));
  EXPECT_NE(rollout(*fused), rollout(*everywhere));
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
