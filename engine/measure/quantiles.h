// Median and p95 of repeated timings. Plain header.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hydrascope {

// The quantile by nearest rank. `sorted`: ascending, not empty; 0 < share ≤ 1.
inline double quantile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

// The lower of the two in the middle. Not empty.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return quantile(values, 0.5);
}

struct RepeatedTime {
  int runs = 0;
  double median = 0, p95 = 0; // seconds

  bool operator==(const RepeatedTime&) const = default;
};

// The time of one run per value; all zero without values.
inline RepeatedTime repeated_time(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::ranges::sort(seconds);
  return {static_cast<int>(seconds.size()), quantile(seconds, 0.5), quantile(seconds, 0.95)};
}

} // namespace hydrascope
