#include "engine/base/text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/json_text.h"

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

TEST(FirstInvalidUtf8, IsThePositionOfTheByte) {
  EXPECT_EQ(first_invalid_utf8("café 😀 שלום"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("caf\xe9 is open"), 3U);        // Latin-1
  EXPECT_EQ(first_invalid_utf8("é\xc3"), 2U);                  // cut off
  EXPECT_EQ(first_invalid_utf8("\xed\xa0\x80"), 0U);           // half of a pair of UTF-16
  EXPECT_EQ(first_invalid_utf8("a\xc0\xaf"), 1U);              // longer than needed
  EXPECT_EQ(first_invalid_utf8("\xef\xbf\xbd"), std::nullopt); // U+FFFD itself
  EXPECT_EQ(invalid_utf8_text("caf\xe9", 3), "byte 4 (0xe9) is not UTF-8");
}

TEST(FirstInvalidUtf8, IsNamedWithItsLine) {
  EXPECT_EQ(invalid_utf8_line_text("caf\xe9", 3), "line 1: byte 4 (0xe9) is not UTF-8");
  EXPECT_EQ(invalid_utf8_line_text("one\n\ncaf\xe9\n", 8), "line 3: byte 4 (0xe9) is not UTF-8");
}

TEST(JsonText, ReplacesWhatIsNotUtf8) {
  const nlohmann::json value = {{"name", "caf\xe9"}};
  EXPECT_EQ(text_of_json(value), "{\"name\":\"caf\xef\xbf\xbd\"}");
  EXPECT_EQ(text_of_json(nlohmann::ordered_json{{"b", 1}, {"a", 2}}, 1), "{\n \"b\": 1,\n \"a\": 2\n}");
  EXPECT_EQ(read_from_json("caf\xe9"), "caf\xef\xbf\xbd");
  EXPECT_EQ(read_from_json("\"caf\xc3\xa9\"\n"), "\"caf\xc3\xa9\"\n");
}

} // namespace
} // namespace hydrascope
