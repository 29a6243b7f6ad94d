#include "engine/run/quantity.h"

#include <gtest/gtest.h>

#include "engine/run/quantities/hidden_states.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/quantities/weight_tile.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope {
namespace {

const ModelInfo kModel = [] {
  ModelInfo model;
  model.layers = 12;
  model.heads = 6;
  model.width = 384;
  return model;
}();
constexpr double kScores = 3 * 6 * 257.0 * 257 * 4; // of one layer

TEST(MemoryEstimate, CountsTheScoresOfOneLayer) {
  EXPECT_DOUBLE_EQ(estimated_bytes({}, kModel, 257), kScores);
  EXPECT_DOUBLE_EQ(estimated_bytes({}, kModel, 514), 4 * kScores);
}

TEST(MemoryEstimate, CountsWeightsByRowsKernelsAndHeads) {
  QuantityKeys keys = {WeightsKey{.layer = 3}};
  EXPECT_DOUBLE_EQ(estimated_bytes(keys, kModel, 257) - kScores, 2 * 6 * 257.0 * 257 * 4);
  keys = {WeightsKey{.layer = 3, .kernel = KernelSpec{}, .rows = {0, 7, 9}},
          WeightsKey{.layer = 3, .kernel = KernelSpec{"elu", {}}, .rows = {0, 7, 9}}};
  EXPECT_DOUBLE_EQ(estimated_bytes(keys, kModel, 257) - kScores, 2 * 2 * 6 * 3 * 257.0 * 4);
  keys = {WeightsKey{.layer = 3, .most_rows = 128}};
  EXPECT_DOUBLE_EQ(estimated_bytes(keys, kModel, 257) - kScores, 2 * 6 * 128 * 257.0 * 4);
  keys = {WeightsKey{.layer = 3, .most_rows = 512}};
  EXPECT_DOUBLE_EQ(estimated_bytes(keys, kModel, 257) - kScores, 2 * 6 * 257.0 * 257 * 4);
}

TEST(MemoryEstimate, TilesTakeWhatIsShownOfThemHoweverLongTheInput) {
  TileKey key{.layer = 0, .kernel = {}, .heads = {}, .fusion = std::nullopt, .rows = 48, .columns = 48};
  const auto tile = [&](std::int64_t tokens) {
    return estimated_bytes({key}, kModel, tokens) - estimated_bytes({}, kModel, tokens);
  };
  EXPECT_DOUBLE_EQ(tile(4097), 2 * 6 * 48.0 * 48 * 4);
  EXPECT_DOUBLE_EQ(tile(257), tile(4097));
  key.fusion = HeadFusion::mean;
  EXPECT_DOUBLE_EQ(tile(257), 2 * 48.0 * 48 * 4);
}

TEST(MemoryEstimate, CountsWhatIsKeptOfEveryLayer) {
  const auto kept = [](const QuantityKey& key) {
    return estimated_bytes({key}, kModel, 100) - estimated_bytes({}, kModel, 100);
  };
  EXPECT_DOUBLE_EQ(kept(HiddenStatesKey{}), 2 * 13 * 100.0 * 384 * 4);
  EXPECT_DOUBLE_EQ(kept(SimilarHeadsKey{HeadIndex{0, 0}}), 4 * 12 * 100.0 * 384 * 4);
  EXPECT_DOUBLE_EQ(kept(RolloutKey{}), 4 * 100.0 * 100 * 4);
}

} // namespace
} // namespace hydrascope
