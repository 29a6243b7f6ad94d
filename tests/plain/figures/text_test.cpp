#include "engine/figures/text.h"

#include <gtest/gtest.h>

namespace hydrascope {
namespace {

std::string joined(std::string_view text, Face face = Face::text) {
  TextStyle style;
  style.face = face;
  std::string shown;
  for (const TextRun& run : text_runs(text, style)) shown += run.text;
  return shown;
}

TEST(TextRuns, LettersThatNoFontHasAreNamed) {
  for (const Face face : {Face::text, Face::mono}) {
    EXPECT_EQ(joined("a\u0378b", face), "aU+0378b"); // no letter has this number
    EXPECT_EQ(joined("\U000E0AAAx", face), "U+E0AAAx");
  }
  EXPECT_GT(text_width("\u0378", {}), text_width("U+", {}));
}

TEST(TextRuns, LettersThatSomeFontHasAreKept) {
  EXPECT_EQ(joined("plain – κόσμος, жизнь"), "plain – κόσμος, жизнь");
  const std::string han = joined("語");
  EXPECT_TRUE(han == "語" || han == "U+8A9E") << han;
}

TEST(RightToLeft, IsFoundInsideOtherText) {
  EXPECT_TRUE(has_right_to_left("the word שלום"));
  EXPECT_TRUE(has_right_to_left("سلام"));
  EXPECT_FALSE(has_right_to_left("plain – κόσμος 語 12 \xe9"));
  EXPECT_FALSE(has_right_to_left(""));
}

TEST(ValidUtf8, KeepsCharactersAndMarksBytesThatAreNone) {
  EXPECT_EQ(valid_utf8("plain – κόσμος 語 \U0001F994"), "plain – κόσμος 語 \U0001F994");
  EXPECT_EQ(valid_utf8("caf\xe9.png"), "caf·.png");
  EXPECT_EQ(valid_utf8("cut \xe8\xaa"), "cut ··");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80"),
            "··· ·· ····"); // surrogate, overlong, too large
  EXPECT_EQ(valid_utf8("a\tb\x01"), "a b·");
}

TEST(FallbackFonts, AreFilesAndComeOnce) {
  const auto& fonts = fallback_fonts();
  for (std::size_t i = 0; i < fonts.size(); ++i) {
    EXPECT_TRUE(std::filesystem::is_regular_file(fonts[i].file)) << fonts[i].file;
    EXPECT_FALSE(fonts[i].family.empty());
    for (std::size_t j = i + 1; j < fonts.size(); ++j)
      EXPECT_FALSE(fonts[i].file == fonts[j].file && fonts[i].index == fonts[j].index);
  }
}

} // namespace
} // namespace hydrascope
