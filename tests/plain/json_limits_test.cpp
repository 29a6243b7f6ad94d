// What is not parsed of JSON from elsewhere.
#include "engine/base/json_limits.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hydrascope {
namespace {

std::string said_of(const std::string& text, const JsonNames names = JsonNames::sorted) {
  const char* const why = why_not_parsed(text, names);
  return why == nullptr ? std::string() : why;
}

TEST(WhyNotParsed, IsSaidOfBracketsInBrackets) {
  const std::string open(100, '['), closed(100, ']');
  EXPECT_EQ(said_of(open + closed), "");
  EXPECT_EQ(said_of("[" + open + closed + "]"), "is nested more than 100 levels deep");
  EXPECT_EQ(said_of(R"(["[[[[ \\", "\"[[[["])" + open), ""); // of no more than these
  EXPECT_EQ(said_of("]]]]" + open), "");
}

TEST(WhyNotParsed, IsSaidOfManyNamesThatKeepTheirOrder) {
  std::string names = "{\"0\": [{\"a\": {}}, {\"a\": {}}]";
  for (int i = 1; i < most_json_names; ++i) names += fmt::format(", \"{0}\": \"{0}: {0}\"", i);
  EXPECT_EQ(said_of(names + "}", JsonNames::ordered), "");
  EXPECT_TRUE(parse_json<nlohmann::ordered_json>(names + "}").is_object());
  names += ", \"more\": 0}";
  EXPECT_EQ(said_of(names, JsonNames::ordered), "has more than 1000 names in one object");
  EXPECT_TRUE(parse_json<nlohmann::ordered_json>(names).is_discarded());
  EXPECT_EQ(said_of(names), "");
  EXPECT_TRUE(parse_json<nlohmann::json>(names).is_object());
}

TEST(WhyNotParsed, IsSaidOfWhatTakesTooMuchMemory) {
  constexpr int pieces = 20'000'000;
  std::string objects = "[", numbers = "[";
  for (int i = 0; i < pieces; ++i) objects += "{},";
  for (int i = 0; i < pieces; ++i) numbers += "0,";
  EXPECT_EQ(said_of(objects + "0]"), "");
  EXPECT_EQ(said_of(objects + objects + "0]]"), "would take more than 2 GB of memory");
  EXPECT_EQ(said_of(numbers + "0]"), "");
}

} // namespace
} // namespace hydrascope
