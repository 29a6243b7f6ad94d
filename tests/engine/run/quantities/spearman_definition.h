// Spearman's ρ by its definition, in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hydrascope::test {

// How many values are smaller, and half of those that are equal.
inline std::vector<double> ranks_by_counting(const std::vector<double>& values) {
  std::vector<double> sorted = values, ranks;
  std::ranges::sort(sorted);
  for (const double value : values) {
    const auto [first, last] = std::ranges::equal_range(sorted, value);
    ranks.push_back(static_cast<double>((first - sorted.begin()) + (last - sorted.begin())) / 2);
  }
  return ranks;
}

// Pearson's correlation of the ranks; 0 where either is constant.
inline double spearman_by_definition(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks_by_counting(a), y = ranks_by_counting(b);
  const double mean = static_cast<double>(x.size()) / 2; // of the ranks of n values, whatever their ties
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx * yy > 0 ? xy / std::sqrt(xx * yy) : 0.0;
}

} // namespace hydrascope::test
