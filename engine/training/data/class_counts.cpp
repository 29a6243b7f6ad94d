#include "engine/training/data/class_counts.h"

#include <algorithm>
#include <cmath>

namespace hydrascope::training {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

} // namespace

void ClassCounts::add(const std::int64_t target, const std::span<const std::int64_t> best) {
  ++items;
  ++actual[static_cast<std::size_t>(target)];
  ++predicted[static_cast<std::size_t>(best.front())];
  const auto five = best.first(std::min<std::size_t>(5, best.size()));
  if (std::ranges::find(five, target) != five.end()) ++among_five;
  if (best.front() != target) return;
  ++first;
  ++right[static_cast<std::size_t>(target)];
}

double top1(const ClassCounts& counts) { return share(counts.first, counts.items); }
double top5(const ClassCounts& counts) { return share(counts.among_five, counts.items); }

double constant_answer(const ClassCounts& counts) {
  return counts.actual.empty() ? 0.0 : share(std::ranges::max(counts.actual), counts.items);
}

double matthews_correlation(const ClassCounts& counts) {
  const auto all = static_cast<double>(counts.items);
  double both = 0, actual = 0, predicted = 0; // Σ of products and of squares
  for (std::size_t i = 0; i < counts.actual.size(); ++i) {
    const auto a = static_cast<double>(counts.actual[i]), p = static_cast<double>(counts.predicted[i]);
    both += a * p;
    actual += a * a;
    predicted += p * p;
  }
  const double spread = (all * all - actual) * (all * all - predicted);
  return spread > 0 ? (static_cast<double>(counts.first) * all - both) / std::sqrt(spread) : 0.0;
}

double f1_of_class(const ClassCounts& counts, const std::size_t index) {
  return share(2 * counts.right[index], counts.actual[index] + counts.predicted[index]);
}

double f1_macro(const ClassCounts& counts) {
  double sum = 0;
  int classes = 0;
  for (std::size_t i = 0; i < counts.actual.size(); ++i) {
    if (counts.actual[i] + counts.predicted[i] == 0) continue;
    sum += f1_of_class(counts, i);
    ++classes;
  }
  return classes > 0 ? sum / classes : 0.0;
}

} // namespace hydrascope::training
