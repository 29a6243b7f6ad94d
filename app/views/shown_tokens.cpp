#include "app/views/shown_tokens.h"

#include <algorithm>

namespace hydrascope::app {

namespace {

std::string without_hashes(const std::string& piece) {
  return piece.starts_with("##") ? piece.substr(2) : piece;
}

} // namespace

std::vector<ShownToken> shown_tokens(const RunResult& run, const TokenDisplay& display) {
  std::vector<ShownToken> shown;
  const bool text = run.rows == 0;
  int word = -1; // of the shown token that may grow
  for (std::size_t i = 0; i < run.tokens.size(); ++i) {
    const TokenInfo& token = run.tokens[i];
    const bool grows = text && display.whole_words && !token.special && token.word >= 0 && token.word == word;
    word = token.special ? -1 : token.word;
    if (text && token.special && !display.special) continue;
    if (grows) {
      if (shown.back().count == 1) shown.back().text = without_hashes(shown.back().text);
      ++shown.back().count;
      shown.back().text += without_hashes(token.text);
    } else {
      shown.push_back({static_cast<std::int64_t>(i), 1, token.text});
    }
  }
  return shown;
}

std::optional<int> shown_index(std::span<const ShownToken> shown, std::optional<std::int64_t> token) {
  if (!token) return std::nullopt;
  const auto found = std::ranges::find_if(shown, [&](const ShownToken& each) {
    return *token >= each.first && *token < each.first + each.count;
  });
  if (found == shown.end()) return std::nullopt;
  return static_cast<int>(found - shown.begin());
}

bool any_of_them(const ShownToken& shown, std::span<const std::int64_t> tokens) {
  const auto from = std::ranges::lower_bound(tokens, shown.first);
  return from != tokens.end() && *from < shown.first + shown.count;
}

std::vector<double> shown_sums(std::span<const ShownToken> shown, std::span<const float> values) {
  std::vector<double> sums;
  for (const ShownToken& token : shown) {
    double sum = 0;
    for (std::int64_t i = token.first; i < token.first + token.count; ++i) {
      if (static_cast<std::size_t>(i) < values.size())
        sum += static_cast<double>(values[static_cast<std::size_t>(i)]);
    }
    sums.push_back(sum);
  }
  return sums;
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

} // namespace hydrascope::app
