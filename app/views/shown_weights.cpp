#include "app/views/shown_weights.h"

#include <algorithm>

#include "engine/base/error.h"

namespace hydrascope::app {

ShownWeights shown_weights(const std::shared_ptr<const RunResult>& run, const WeightsResult& weights,
                           const TokenDisplay& display) {
  ShownWeights shown{shown_tokens(*run, display), nullptr};
  const bool each_by_itself = shown.tokens.size() == run->tokens.size();
  if (each_by_itself) {
    shown.weights = std::shared_ptr<const WeightsResult>(run, &weights); // lives as long as the run
    return shown;
  }
  auto merged = std::make_shared<WeightsResult>(weights);
  merged->rows.clear();
  merged->weights = {};
  for (std::size_t token = 0; token < shown.tokens.size(); ++token) {
    const bool there = weights.rows.empty() || any_of_them(shown.tokens[token], weights.rows);
    if (there) merged->rows.push_back(static_cast<std::int64_t>(token));
  }
  const std::int64_t rows = weights.weights.extent(1), keys = weights.weights.extent(2);
  for (std::int64_t head = 0; head < weights.weights.extent(0); ++head) {
    const std::span<const float> values = weights.weights.slice(head);
    const Array one = shown_weights(Array{{rows, keys}, {values.begin(), values.end()}}, weights.rows,
                                    std::span(shown.tokens));
    merged->weights.shape = {head + 1, one.extent(0), one.extent(1)};
    merged->weights.values.insert(merged->weights.values.end(), one.values.begin(), one.values.end());
  }
  shown.weights = std::move(merged);
  return shown;
}

WeightsResult subtract_weights(const WeightsResult& a, const WeightsResult& b) {
  if (a.weights.shape != b.weights.shape || a.rows != b.rows)
    throw UsageError("A − B", "A's kernel and B's have different numbers of heads",
                     "compare kernels that have equally many");
  WeightsResult difference = a;
  difference.derived_signed = true;
  difference.untrained = a.untrained || b.untrained;
  difference.check = 0;
  for (std::size_t i = 0; i < difference.weights.values.size(); ++i)
    difference.weights.values[i] -= b.weights.values[i];
  return difference;
}

} // namespace hydrascope::app
