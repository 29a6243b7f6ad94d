#include "engine/run/memory_estimate.h"

#include <gtest/gtest.h>

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
  Asks asks;
  asks.weights = {{.layer = 3, .kernels = {}, .rows = {}}};
  EXPECT_DOUBLE_EQ(estimated_bytes(asks, kModel, 257) - kScores, 2 * 6 * 257.0 * 257 * 4);
  asks.weights = {{.layer = 3, .kernels = {KernelSpec{}, KernelSpec{"elu", {}}}, .rows = {0, 7, 9}}};
  EXPECT_DOUBLE_EQ(estimated_bytes(asks, kModel, 257) - kScores, 2 * 2 * 6 * 3 * 257.0 * 4);
}

TEST(MemoryEstimate, TilesTakeWhatIsShownOfThemHoweverLongTheInput) {
  Asks asks;
  asks.tiles = {{.layer = 0, .kernel = {}, .heads = {}, .fusion = std::nullopt, .rows = 48, .columns = 48}};
  const auto tile = [&](std::int64_t tokens) {
    return estimated_bytes(asks, kModel, tokens) - estimated_bytes({}, kModel, tokens);
  };
  EXPECT_DOUBLE_EQ(tile(4097), 2 * 6 * 48.0 * 48 * 4);
  EXPECT_DOUBLE_EQ(tile(257), tile(4097));
  asks.tiles[0].fusion = HeadFusion::mean;
  EXPECT_DOUBLE_EQ(tile(257), 2 * 48.0 * 48 * 4);
}

TEST(MemoryEstimate, CountsWhatIsKeptOfEveryLayer) {
  Asks asks;
  asks.hidden = true;
  EXPECT_DOUBLE_EQ(estimated_bytes(asks, kModel, 100) - estimated_bytes({}, kModel, 100),
                   2 * 13 * 100.0 * 384 * 4);
  asks = {};
  asks.similar_heads = HeadIndex{0, 0};
  EXPECT_DOUBLE_EQ(estimated_bytes(asks, kModel, 100) - estimated_bytes({}, kModel, 100),
                   4 * 12 * 100.0 * 384 * 4);
  asks = {};
  asks.rollout = RolloutKey{};
  EXPECT_DOUBLE_EQ(estimated_bytes(asks, kModel, 100) - estimated_bytes({}, kModel, 100),
                   4 * 100.0 * 100 * 4);
}

TEST(MemoryEstimate, IsWrittenForPeople) {
  EXPECT_EQ(bytes_text(640e6), "640 MB");
  EXPECT_EQ(bytes_text(1.26e9), "1.3 GB");
}

} // namespace
} // namespace hydrascope
