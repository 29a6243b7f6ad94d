#include "engine/run/pass.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace hydrascope {
namespace {

TEST(PrefixCache, DropsTheLeastRecentlyUsed) {
  const at::Tensor state = at::zeros({1, 4, 4}); // 64 bytes
  PrefixCache cache(3 * 64);
  for (const char* key : {"a", "b", "c"}) cache.insert(key, {state, "composed", 0});
  EXPECT_TRUE(cache.find("a"));
  cache.insert("d", {state, "composed", 0});
  EXPECT_TRUE(cache.find("a"));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_EQ(cache.bytes(), 3U * 64U);
}

TEST(PrefixCache, ReplacesAndRefusesWhatIsTooLarge) {
  PrefixCache cache(64);
  cache.insert("a", {at::zeros({1, 4, 4}), "first", 0});
  cache.insert("a", {at::zeros({1, 4, 4}), "second", 0});
  EXPECT_EQ(cache.find("a")->path, "second");
  cache.insert("b", {at::zeros({1, 8, 4}), "large", 0});
  EXPECT_FALSE(cache.find("b"));
  EXPECT_TRUE(cache.find("a"));
  EXPECT_EQ(cache.size(), 1U);
}

} // namespace
} // namespace hydrascope
