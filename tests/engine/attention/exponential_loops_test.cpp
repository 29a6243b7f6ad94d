// The error of the loops' exponentials and logarithm, for every kind of processor that this machine can be.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "engine/attention/simd/cpu/exponential.h"
#include "engine/attention/simd/loop_types.h"
#include "tests/engine/attention/sequence.h"

namespace hydrascope {
namespace {

constexpr std::int64_t count = 1 << 20;

// Evenly over [−87, 88], where e^x is a normal number.
std::vector<float> exponents() {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    x[static_cast<std::size_t>(i)] =
        static_cast<float>(-87 + 175 * static_cast<double>(i) / static_cast<double>(count - 1));
  return x;
}

double largest_relative_error(const std::vector<float>& x, const std::vector<float>& power) {
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    largest = std::max(largest, testing_inputs::error_of(static_cast<double>(power[i]) / exact, 1));
  }
  return largest;
}

TEST(ExponentialLoops, ErrorsAreAsStated) {
  const std::vector<float> x = exponents();
  std::vector<float> power(x.size());
  for (const cpu::Processor processor : cpu::processors()) {
    SCOPED_TRACE(cpu::name_of(processor));
    const cpu::ExponentialLoops& loops = cpu::exponential_loops(processor);
    loops.exact(x.data(), count, power.data());
    EXPECT_LT(largest_relative_error(x, power), 1e-7);
    loops.rough(x.data(), count, power.data());
    EXPECT_LT(largest_relative_error(x, power), 1.1e-4);
  }
}

TEST(ExponentialLoops, LogarithmsAreAsExactAsStated) {
  std::vector<float> x, found(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) // evenly over the logarithms of normal numbers
    x.push_back(
        static_cast<float>(std::exp(-87 + 175 * static_cast<double>(i) / static_cast<double>(count))));
  for (const cpu::Processor processor : cpu::processors()) {
    SCOPED_TRACE(cpu::name_of(processor));
    cpu::exponential_loops(processor).logarithm(x.data(), count, found.data());
    double worst = 0; // of the stated bound
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::log(static_cast<double>(x[i]));
      worst = std::max(worst,
                       testing_inputs::error_of(found[i], exact) / std::max(1e-7, 1.2e-7 * std::abs(exact)));
    }
    EXPECT_LT(worst, 1);
    std::vector<float> special(cpu::most_lanes, 1), of_special(cpu::most_lanes);
    special[1] = std::numeric_limits<float>::quiet_NaN();
    cpu::exponential_loops(processor).logarithm(special.data(), cpu::most_lanes, of_special.data());
    EXPECT_EQ(of_special[0], 0);
    EXPECT_TRUE(std::isnan(of_special[1]));
  }
}

TEST(ExponentialLoops, ZeroTheSmallestAndWhatIsNoNumber) {
  std::vector<float> x(cpu::most_lanes), power(x.size());
  x[1] = -std::numeric_limits<float>::infinity();
  x[2] = -1000;
  x[3] = std::numeric_limits<float>::quiet_NaN();
  for (const cpu::Processor processor : cpu::processors()) {
    SCOPED_TRACE(cpu::name_of(processor));
    const cpu::ExponentialLoops& loops = cpu::exponential_loops(processor);
    for (const auto* function : {&loops.exact, &loops.rough}) {
      (*function)(x.data(), cpu::most_lanes, power.data());
      EXPECT_EQ(power[0], 1);
      for (const std::size_t i : {1U, 2U}) {
        EXPECT_GT(power[i], 0);
        EXPECT_LT(power[i], 2e-38F);
      }
      EXPECT_TRUE(std::isnan(power[3]));
    }
  }
}

} // namespace
} // namespace hydrascope
