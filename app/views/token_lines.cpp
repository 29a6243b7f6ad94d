#include "app/views/token_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hydrascope::app {

std::optional<int> second_sentence(const RunResult& run) {
  for (std::size_t token = 0; token + 1 < run.tokens.size(); ++token) {
    if (run.tokens[token].text == "[SEP]") return static_cast<int>(token) + 1;
  }
  return std::nullopt;
}

bool pair_shown(TokenPairs pairs, std::optional<int> second, int query, int key) {
  if (pairs == TokenPairs::all || !second) return true;
  const bool query_in_b = query >= *second, key_in_b = key >= *second;
  switch (pairs) {
    case TokenPairs::a_to_a: return !query_in_b && !key_in_b;
    case TokenPairs::a_to_b: return !query_in_b && key_in_b;
    case TokenPairs::b_to_a: return query_in_b && !key_in_b;
    case TokenPairs::b_to_b: return query_in_b && key_in_b;
    case TokenPairs::all: break;
  }
  return true;
}

TokenLines strongest_lines(const WeightsResult& weights, std::span<const int> heads, TokenPairs pairs,
                           std::optional<int> second, std::size_t most) {
  TokenLines result;
  result.pairs = pairs;
  const auto tokens = static_cast<int>(weights.weights.extent(2));
  // Counted by size first: with 512 tokens and 12 heads there are three million of them.
  constexpr int steps = 1000;
  const auto each = [&](const auto& visit) {
    for (const int head : heads) {
      if (head >= weights.weights.extent(0)) continue;
      const std::span<const float> matrix = weights.weights.slice(head);
      for (int query = 0; query < tokens; ++query) {
        for (int key = 0; key < tokens; ++key) {
          if (!pair_shown(pairs, second, query, key)) continue;
          const std::size_t cell = static_cast<std::size_t>(query) * static_cast<std::size_t>(tokens) +
                                   static_cast<std::size_t>(key);
          visit(TokenLine{query, key, head, std::abs(matrix[cell])});
        }
      }
    }
  };
  std::int64_t all = 0;
  each([&](const TokenLine& line) {
    result.strongest = std::max(result.strongest, line.weight);
    ++all;
  });
  if (!(result.strongest > 0)) return result;
  std::vector<std::size_t> counts(steps + 1, 0);
  const auto step_of = [&](float weight) {
    return static_cast<std::size_t>(weight / result.strongest * static_cast<float>(steps));
  };
  each([&](const TokenLine& line) { ++counts[step_of(line.weight)]; });
  std::size_t lowest = steps, kept = counts[steps];
  while (lowest > steps / 100 && kept + counts[lowest - 1] <= most) kept += counts[--lowest];
  each([&](const TokenLine& line) {
    if (step_of(line.weight) >= lowest && result.lines.size() < most) result.lines.push_back(line);
  });
  result.left = all - static_cast<std::int64_t>(result.lines.size());
  std::ranges::sort(result.lines, {}, &TokenLine::weight);
  return result;
}

std::vector<double> row_weights(const WeightsResult& weights, const HeadChoice& head, std::int64_t query) {
  const auto found = std::ranges::find(weights.rows, query);
  if (found == weights.rows.end() || weights.weights.empty()) return {};
  const auto row = static_cast<std::size_t>(found - weights.rows.begin());
  const auto keys = static_cast<std::size_t>(weights.weights.extent(2));
  const std::vector<int> heads = shown_heads(head, static_cast<int>(weights.weights.extent(0)));
  std::vector<double> result(keys, 0);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const std::span<const float> values = weights.weights.slice(heads[i]).subspan(row * keys, keys);
    for (std::size_t key = 0; key < keys; ++key) {
      const auto value = static_cast<double>(values[key]);
      double& sum = result[key];
      if (head.fusion == HeadFusion::mean || i == 0) {
        sum += value;
      } else {
        sum = head.fusion == HeadFusion::min ? std::min(sum, value) : std::max(sum, value);
      }
    }
  }
  if (head.fusion == HeadFusion::mean && !heads.empty()) {
    for (double& value : result) value /= static_cast<double>(heads.size());
  }
  return result;
}

} // namespace hydrascope::app
