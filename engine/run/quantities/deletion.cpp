#include "engine/run/quantities/deletion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

void append(DeletionCurve& curve, const HiddenTarget& reading) {
  curve.values.push_back(reading.value);
  if (reading.probability) curve.probabilities.push_back(*reading.probability);
}

double area_under(const std::vector<double>& heights, const std::vector<double>& at) {
  double area = 0;
  for (std::size_t i = 1; i < heights.size(); ++i)
    area += (at[i] - at[i - 1]) * (heights[i] + heights[i - 1]) / 2;
  return area;
}

// std::shuffle depends on the implementation of the standard library.
std::vector<std::int64_t> shuffled(std::span<const std::int64_t> tokens, std::uint64_t seed) {
  std::vector<std::int64_t> order(tokens.begin(), tokens.end());
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

std::vector<std::int64_t> by_contribution(std::span<const float> contributions,
                                          std::span<const std::int64_t> tokens) {
  const auto contribution = [&](std::int64_t token) {
    const float value = contributions[static_cast<std::size_t>(token)];
    return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
  };
  std::vector<std::int64_t> order(tokens.begin(), tokens.end());
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return contribution(a) > contribution(b); });
  return order;
}

} // namespace

int deletion_steps(int steps, std::int64_t candidates) {
  return static_cast<int>(std::min<std::int64_t>(steps, candidates));
}

int deletion_passes(int steps, std::int64_t candidates) {
  const int possible = deletion_steps(steps, candidates);
  return possible < 1 ? 0 : 3 * (possible - 1) + 1;
}

DeletionResult deletion_curves(const DeletionKey& key, std::span<const float> contributions,
                               std::span<const std::int64_t> candidates, const HiddenTarget& whole,
                               const DeletionProbe& probe) {
  if (key.steps < 1)
    throw UsageError(fmt::format("deletion in {} steps", key.steps), "there must be at least one",
                     "use 1 or more");
  if (candidates.empty())
    throw UsageError("deletion", "there is no token left to hide", "use a longer input, or hide less of it");
  const int steps = deletion_steps(key.steps, static_cast<std::int64_t>(candidates.size()));
  DeletionResult result;
  result.key = key;
  for (int step = 0; step <= steps; ++step) {
    const double share = static_cast<double>(step) / steps;
    result.hidden.push_back(std::llround(share * static_cast<double>(candidates.size())));
    result.shares.push_back(static_cast<double>(result.hidden.back()) /
                            static_cast<double>(candidates.size()));
  }
  const std::vector<std::int64_t> most = by_contribution(contributions, candidates);
  const std::vector<std::int64_t> least(most.rbegin(), most.rend());
  const std::vector<std::int64_t> random = shuffled(candidates, key.seed);
  const HiddenTarget nothing_left = probe({candidates.begin(), candidates.end()});
  const auto follow = [&](const std::vector<std::int64_t>& order) {
    DeletionCurve curve;
    append(curve, whole);
    for (std::size_t step = 1; step + 1 < result.hidden.size(); ++step) {
      std::vector<std::int64_t> hidden(order.begin(), order.begin() + result.hidden[step]);
      std::sort(hidden.begin(), hidden.end());
      append(curve, probe(std::move(hidden)));
    }
    append(curve, nothing_left);
    curve.area = area_under(curve.probabilities.empty() ? curve.values : curve.probabilities, result.shares);
    return curve;
  };
  result.most_first = follow(most);
  result.least_first = follow(least);
  result.random = follow(random);
  return result;
}

} // namespace hydrascope
