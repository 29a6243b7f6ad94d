// A run's weights made into those that are shown: of queries alone, between words, A − B.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "app/views/weights_view.h"

namespace hydrascope::app {

std::shared_ptr<const WeightsResult> weights_of_queries(const RunResult& run, const WeightsResult& weights) {
  const std::int64_t first_key = queries_alone(run.model);
  if (first_key == 0) return {std::shared_ptr<const void>(), &weights};
  auto part = std::make_shared<WeightsResult>(weights);
  std::erase_if(part->rows, [&](std::int64_t row) { return row >= first_key; });
  const std::int64_t heads = weights.weights.extent(0), keys = weights.weights.extent(2);
  part->weights = {{heads, std::ssize(part->rows), keys - first_key}, {}};
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto values = weights.weights.slice(head);
    for (std::size_t row = 0; row < weights.rows.size(); ++row) {
      if (weights.rows[row] >= first_key) continue;
      const auto from = values.begin() + (static_cast<std::int64_t>(row) * keys + first_key);
      part->weights.values.insert(part->weights.values.end(), from, from + (keys - first_key));
    }
  }
  return part;
}

Array shown_weights(const Array& weights, std::span<const std::int64_t> rows,
                    std::span<const ShownToken> shown) {
  const std::int64_t count = weights.extent(0);
  const auto columns = static_cast<std::int64_t>(shown.size());
  Array result{{0, columns}, {}};
  for (const ShownToken& query : shown) {
    std::vector<double> mean(shown.size(), 0.0);
    int used = 0;
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t token = rows.empty() ? row : rows[static_cast<std::size_t>(row)];
      if (token < query.first || token >= query.first + query.count) continue;
      const std::vector<double> sums = shown_sums(shown, weights.slice(row));
      for (std::size_t key = 0; key < sums.size(); ++key) mean[key] += sums[key];
      ++used;
    }
    if (used == 0) continue;
    ++result.shape[0];
    for (const double value : mean) result.values.push_back(static_cast<float>(value / used));
  }
  return result;
}

ShownWeights shown_weights(const std::shared_ptr<const RunResult>& run, const WeightsResult& weights,
                           const TokenDisplay& display) {
  ShownWeights shown{shown_tokens(*run, display), nullptr};
  const bool unchanged = shown.tokens.size() == run->tokens.size();
  if (unchanged) {
    shown.weights = std::shared_ptr<const WeightsResult>(run, &weights); // lives as long as the run
    return shown;
  }
  auto merged = std::make_shared<WeightsResult>(weights);
  merged->rows.clear();
  merged->weights = {};
  for (std::size_t token = 0; token < shown.tokens.size(); ++token) {
    const bool there = weights.rows.empty() || contains_any(shown.tokens[token], weights.rows);
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
    throw UsageError(side_name(Shown::difference), "A's kernel and B's have different numbers of heads",
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
