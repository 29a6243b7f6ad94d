#include "engine/base/text.h"

#include <gtest/gtest.h>

namespace hydrascope {
namespace {

TEST(NearestName, HasTheFewestChangesAndComesFirst) {
  const std::vector<std::string> names{"softmax", "sdpa", "elu", "relu", "hydra-cosine"};
  EXPECT_EQ(nearest_name("sotfmax", names), "softmax");
  EXPECT_EQ(nearest_name("elu", names), "elu");
  EXPECT_EQ(nearest_name("lu", names), "elu") << "one letter away, relu two";
  EXPECT_EQ(nearest_name("xelu", names), "elu") << "elu and relu are both one change away";
  EXPECT_EQ(nearest_name("", names), "elu") << "the shortest";
  EXPECT_EQ(nearest_name("anything", {}), "");
}

TEST(ContainsAnyCase, IgnoresTheCaseOfAsciiLetters) {
  EXPECT_TRUE(contains_any_case("Egyptian cat", "CAT"));
  EXPECT_TRUE(contains_any_case("anything", ""));
  EXPECT_FALSE(contains_any_case("hydra-cosine", "hedgehog"));
}

TEST(DecimalNumber, IsTheWholeTextOrNothing) {
  EXPECT_EQ(decimal_number("0.25"), 0.25);
  EXPECT_EQ(decimal_number("-3e2"), -300);
  for (const char* text : {"", "1 s", " 1", "nan", "inf", "1e999", "soon"})
    EXPECT_EQ(decimal_number(text), std::nullopt) << text;
}

TEST(BytesText, HasOneDecimalFromAGigabyte) {
  EXPECT_EQ(bytes_text(640e6), "640 MB");
  EXPECT_EQ(bytes_text(1.26e9), "1.3 GB");
}

} // namespace
} // namespace hydrascope
