#include "engine/measure/correlation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace hydrascope {

double pearson_correlation(const std::span<const double> x, const std::span<const double> y) {
  if (x.empty() || std::ranges::min(x) == std::ranges::max(x) || std::ranges::min(y) == std::ranges::max(y))
    return 0;
  const auto count = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / count;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / count;
  double both = 0, of_x = 0, of_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    both += dx * dy;
    of_x += dx * dx;
    of_y += dy * dy;
  }
  const double spread = std::sqrt(of_x) * std::sqrt(of_y);
  return spread > 0 ? std::clamp(both / spread, -1.0, 1.0) : 0.0;
}

std::vector<double> ranks(const std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](const std::size_t i) { return values[i]; });
  std::vector<double> result(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double mean = static_cast<double>(first + 1 + end) / 2; // of the ranks first + 1 … end
    for (; first < end; ++first) result[order[first]] = mean;
  }
  return result;
}

double spearman_correlation(const std::span<const double> x, const std::span<const double> y) {
  return pearson_correlation(ranks(x), ranks(y));
}

} // namespace hydrascope
