#include "engine/measure/pointing.h"

#include <array>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace hydrascope {
namespace {

TEST(Pointing, TheFirstOfTheLargestPatches) {
  EXPECT_EQ(maximum_patch(std::array{0.1F, 0.7F, 0.7F, 0.2F}), 1U);
  EXPECT_EQ(maximum_patch(std::array{-3.0F, -2.0F, 0.01F}), 2U);
}

TEST(Pointing, AMapWithoutPositiveValueIsEmpty) {
  EXPECT_FALSE(maximum_patch(std::array{0.0F, -1.0F}));
  EXPECT_FALSE(maximum_patch(std::array{std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_FALSE(maximum_patch({}));
}

TEST(Pointing, PatchesAreFollowedBackThroughTheCrop) {
  // A picture of 100 × 60 whose middle 60 × 60 was cropped to 3 × 3 patches: 20 pixels each, from column 20.
  const PatchGrid grid{3, 3, 20, 0, 60, 60};
  const std::array box = {PixelBox{70, 10, 79, 19}};
  EXPECT_TRUE(points_into(grid, 2, box)); // its centre is at column 70, row 10: the box's first pixel
  EXPECT_FALSE(points_into(grid, 1, box));
  EXPECT_FALSE(points_into(grid, 5, box));
  EXPECT_TRUE(
      points_into(grid, 4, std::array{PixelBox{40, 20, 50, 30}})); // column 50, row 30: its last pixel
  EXPECT_FALSE(points_into(grid, 4, std::array{PixelBox{40, 20, 49, 30}}));
  EXPECT_TRUE(points_into(grid, 8, std::array{PixelBox{0, 0, 1, 1}, PixelBox{60, 40, 99, 59}}));
  EXPECT_FALSE(points_into(grid, 8, {}));
}

TEST(Pointing, Baselines) {
  const PatchGrid grid{2, 4, 0, 0, 40, 20};             // centres at columns 5, 15, 25, 35 and rows 5, 15
  const std::array left = {PixelBox{0, 0, 19, 19}};     // four patches of eight
  const std::array middle = {PixelBox{20, 10, 20, 10}}; // one pixel, no patch's centre
  EXPECT_DOUBLE_EQ(chance_to_point_into(grid, left), 0.5);
  EXPECT_FALSE(centre_points_into(grid, left)); // the middle is where pixel 20, 10 begins
  EXPECT_TRUE(centre_points_into(grid, middle));
  EXPECT_DOUBLE_EQ(chance_to_point_into(grid, middle), 0.0);
}

} // namespace
} // namespace hydrascope
