#include "engine/figures/scale.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace hydrascope {
namespace {

Scale scale_of(double low, double high, bool logarithmic = false) {
  Scale scale;
  scale.low = low;
  scale.high = high;
  scale.logarithmic = logarithmic;
  return scale;
}

std::string texts(const std::vector<Tick>& marks) {
  std::string all;
  for (const auto& mark : marks) all += (all.empty() ? "" : " ") + mark.text;
  return all;
}

TEST(Scale, PositionIsLinearAndClamped) {
  EXPECT_DOUBLE_EQ(scale_position(scale_of(-2, 2), 0), 0.5);
  EXPECT_DOUBLE_EQ(scale_position(scale_of(0, 4), 1), 0.25);
  EXPECT_DOUBLE_EQ(scale_position(scale_of(0, 4), 9), 1);
  EXPECT_DOUBLE_EQ(scale_position(scale_of(0, 4), -9), 0);
  EXPECT_TRUE(std::isnan(scale_position(scale_of(0, 4), std::nan(""))));
}

TEST(Scale, LogarithmicPositionHalvesTheDecades) {
  EXPECT_NEAR(scale_position(scale_of(1e-4, 1, true), 1e-2), 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(scale_position(scale_of(1e-4, 1, true), 0), 0);
}

TEST(Scale, DegenerateRangeDoesNotDivideByZero) {
  EXPECT_DOUBLE_EQ(scale_position(scale_of(0, 0), 0), 0);
  EXPECT_DOUBLE_EQ(scale_position(scale_of(3, 3), 3), 1);
}

TEST(Ticks, AreRoundNumbersInsideTheRange) {
  EXPECT_EQ(texts(ticks(0, 1, false, 6)), "0.0 0.2 0.4 0.6 0.8 1.0");
  EXPECT_EQ(texts(ticks(-0.3, 0.3, false, 4)), "−0.2 0.0 0.2");
  EXPECT_EQ(texts(ticks(0, 0.45, false, 2)).find("0.0"), 0u);
  EXPECT_GE(ticks(0, 0.45, false, 2).size(), 2u);
  for (const double high : {1e-7, 0.003, 0.45, 1.0, 7.3, 196.0, 5e8}) {
    const auto marks = ticks(0, high, false, 6);
    EXPECT_GE(marks.size(), 2u) << high;
    for (const auto& mark : marks) {
      EXPECT_GE(mark.position, 0);
      EXPECT_LE(mark.position, 1);
    }
  }
}

TEST(Ticks, AreAsManyAsThereIsRoomFor) {
  EXPECT_EQ(texts(ticks(0, 195, false, 21)),
            "0 10 20 30 40 50 60 70 80 90 100 110 120 130 140 150 160 170 180 190");
  EXPECT_EQ(ticks(0, 11, false, 12).size(), 12U);
}

TEST(Ticks, HaveTheDigitsThatTellThemApart) {
  EXPECT_EQ(texts(ticks(1000000, 1000008, false, 6)), "1000000 1000002 1000004 1000006 1000008");
  EXPECT_EQ(texts(ticks(0, 2e6, false, 6)), "0 500000 1·10⁶ 1.5·10⁶ 2·10⁶");
  for (const auto& [low, high] :
       {std::pair{0.1234561, 0.1234569}, std::pair{1e9, 1e9 + 3}, std::pair{-1e6 - 10, -1e6},
        std::pair{2e-7, 2.001e-7}, std::pair{3.0, 3.00001}}) {
    const auto marks = ticks(low, high, false, 6);
    ASSERT_GE(marks.size(), 2u);
    for (std::size_t index = 1; index < marks.size(); ++index)
      EXPECT_NE(marks[index].text, marks[index - 1].text) << low;
  }
}

TEST(Ticks, OfARangeWithinRoundingAreOneValue) {
  EXPECT_EQ(texts(ticks(1, std::nextafter(1.0, 2.0), false, 6)), "1");
  EXPECT_EQ(texts(ticks(-std::nextafter(1e9, 2e9), -1e9, false, 6)), "−1·10⁹");
  EXPECT_EQ(texts(ticks(1, std::nextafter(1.0, 2.0), true, 6)), "1");
  EXPECT_GE(ticks(1, 1 + 1e-9, false, 6).size(), 2U);
  EXPECT_GE(ticks(1, static_cast<double>(std::nextafter(1.0F, 2.0F)), false, 6).size(), 2U);
}

TEST(Ticks, NumbersSayWhatTheirPositionIs) {
  for (const auto& mark : ticks(0, 7.3, false, 6))
    EXPECT_NEAR(std::stod(mark.text) / 7.3, mark.position, 1e-9);
}

TEST(Ticks, LogarithmicOnesArePowersOfTen) {
  EXPECT_EQ(texts(ticks(1e-5, 0.45, true, 6)), "10⁻⁵ 10⁻⁴ 0.001 0.01 0.1");
  EXPECT_EQ(texts(ticks(1, 6, true, 6)), "1 2 5");
  EXPECT_EQ(texts(ticks(1.5e6, 6e6, true, 6)), "2·10⁶ 5·10⁶");
}

TEST(Ticks, OfANarrowLogarithmicRangeLieBetweenItsRoundNumbers) {
  for (const auto& [low, high] :
       {std::pair{0.62, 0.93}, std::pair{1.2, 1.8}, std::pair{1.5, 4.0}, std::pair{2100.0, 4900.0}}) {
    const auto marks = ticks(low, high, true, 6);
    EXPECT_GE(marks.size(), 2u) << low;
    for (const auto& mark : marks)
      EXPECT_NEAR(mark.position, std::log(std::stod(mark.text) / low) / std::log(high / low), 1e-9);
  }
}

TEST(NumberText, IsForPeople) {
  EXPECT_EQ(number_text(0.5), "0.5");
  EXPECT_EQ(number_text(-0.12345), "−0.123");
  EXPECT_EQ(number_text(-0.0), "0");
  EXPECT_EQ(number_text(std::nan("")), "—");
  EXPECT_EQ(number_text(99.96), "100");
  EXPECT_EQ(number_text(-99.6, 2), "−100");
  EXPECT_EQ(number_text(999.6), "1000");
  EXPECT_EQ(number_text(1049.7), "1050");
  EXPECT_EQ(number_text(0.000531), "0.000531");
  EXPECT_EQ(number_text(5.31e-5), "5.31·10⁻⁵");
  EXPECT_EQ(number_text(-5.31e-5), "−5.31·10⁻⁵");
  EXPECT_EQ(number_text(1.234e9), "1.23·10⁹");
  EXPECT_EQ(number_text(-2e6), "−2·10⁶");
}

TEST(AmountText, HasWordsForWhatIsTooSmall) {
  EXPECT_EQ(amount_text(0.351), "0.351");
  EXPECT_EQ(amount_text(-3.2025), "−3.2");
  EXPECT_EQ(amount_text(1e-6), "< 0.0001");
  EXPECT_EQ(amount_text(-1e-6), "≈ 0");
  EXPECT_EQ(amount_text(0), "none");
  EXPECT_EQ(amount_text(-0.0), "none");
  EXPECT_EQ(amount_text(std::nan("")), "—");
}

TEST(PercentText, HasNoExponentAndNoNegativeZero) {
  EXPECT_EQ(percent_text(0.6387), "63.9 %");
  EXPECT_EQ(percent_text(0.0041), "0.41 %");
  EXPECT_EQ(percent_text(0.9999), "100 %");
  EXPECT_EQ(percent_text(-1.0), "−100 %");
  EXPECT_EQ(percent_text(-0.996), "−99.6 %");
  EXPECT_EQ(percent_text(-3.11), "−311 %");
  EXPECT_EQ(percent_text(12.0), "1200 %");
  EXPECT_EQ(percent_text(1e-5), "< 0.1 %");
  EXPECT_EQ(percent_text(-1e-9), "≈ 0 %");
  EXPECT_EQ(percent_text(-0.0), "none");
  EXPECT_EQ(percent_text(std::nan("")), "—");
}

TEST(DecimalText, LinesUpInAColumn) {
  const auto column = [](double largest, double value) { return decimal_text(value, decimals_of(largest)); };
  EXPECT_EQ(column(0.0357, 0.0357), "0.0357");
  EXPECT_EQ(column(0.0357, -0.00922), "−0.0092");
  EXPECT_EQ(column(0.0357, -0.00001), "0.0000");
  EXPECT_EQ(column(3.25, 0.5), "0.50");
  EXPECT_EQ(column(1250, 7.5), "8");
  EXPECT_EQ(column(0, 0), "0");
  EXPECT_EQ(column(1, -std::numeric_limits<double>::infinity()), "−inf");
}

} // namespace
} // namespace hydrascope
