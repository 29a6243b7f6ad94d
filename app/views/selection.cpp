#include "app/views/selection.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/figures/token_text.h"

namespace hydrascope::app {

namespace {

std::string without_hashes(const std::string& piece) {
  return piece.starts_with("##") ? piece.substr(2) : piece;
}

// How many heads share each head of keys; 1: none do.
int heads_of_a_key(const ModelInfo& model) {
  return model.key_heads > 0 && model.key_heads < model.heads ? model.heads / model.key_heads : 1;
}

// A hidden word is padding to the model; a hidden patch is a token like others.
bool is_padding(const RunResult& run, const std::int64_t token) {
  const bool hidden = run.rows == 0 && std::ranges::binary_search(run.hidden_tokens, token);
  return hidden || (run.model.capture && std::ranges::binary_search(run.model.capture->padding, token));
}

} // namespace

const char* side_name(Shown side) {
  switch (side) {
    case Shown::a: return "A";
    case Shown::b: return "B";
    case Shown::difference: return "A − B";
    case Shown::all: break;
  }
  return "A | B | A − B";
}

const char* side_name(Side side) { return side_name(side == Side::a ? Shown::a : Shown::b); }

std::string difference_label(const std::string& label) { return label + ", " + side_name(Shown::difference); }

std::string HeadChoice::text() const {
  if (head) return fmt::format("head {}", *head);
  const std::string text = fusion == HeadFusion::mean  ? "mean of heads"
                           : fusion == HeadFusion::min ? "minimum of heads"
                                                       : "maximum of heads";
  return subset.empty() ? text : fmt::format("{} {}", text, fmt::join(subset, ", "));
}

std::vector<int> shown_heads(const HeadChoice& choice, int heads) {
  std::vector<int> shown;
  for (int head = 0; head < heads; ++head) {
    const bool chosen = choice.subset.empty() || std::ranges::count(choice.subset, head) > 0;
    if (choice.head ? *choice.head == head : chosen) shown.push_back(head);
  }
  return shown;
}

HeadChoice existing_heads(const HeadChoice& choice, int heads) {
  const std::vector<int> shown = shown_heads(choice, heads);
  if (shown.empty()) return {.head = heads - 1, .fusion = choice.fusion};
  HeadChoice existing = choice;
  if (!choice.subset.empty()) existing.subset = shown;
  return existing;
}

UsageError no_such_head(const HeadChoice& choice, int heads, std::string_view kernel) {
  return {"--head", fmt::format("{} has {} heads and no {}", kernel, heads, choice.text()),
          "heads are numbered from 0"};
}

void require_heads(const HeadChoice& choice, int heads, std::string_view kernel) {
  if (shown_heads(choice, heads).empty()) throw no_such_head(choice, heads, kernel);
}

HeadChoice parse_head(std::string_view text) {
  if (text == "mean") return {std::nullopt, HeadFusion::mean};
  if (text == "min") return {std::nullopt, HeadFusion::min};
  if (text == "max") return {std::nullopt, HeadFusion::max};
  int head = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), head);
  if (error != std::errc{} || end != text.data() + text.size() || head < 0) {
    throw UsageError("--head", "'" + std::string(text) + "' is not a head",
                     "use a number from 0, mean, min or max");
  }
  return {head, HeadFusion::mean};
}

std::string shares_keys_text(const ModelInfo& model, const int head) {
  const int each = heads_of_a_key(model), first = head - head % each;
  return each == 1 ? std::string()
                   : fmt::format("shares keys and values with heads {}–{}", first, first + each - 1);
}

std::int64_t queries_alone(const ModelInfo& model) { return model.capture ? model.capture->queries : 0; }

std::vector<std::int64_t> query_tokens(const RunResult& run) {
  const std::int64_t alone = queries_alone(run.model);
  std::vector<std::int64_t> tokens;
  for (std::int64_t token = 0; token < std::ssize(run.tokens); ++token)
    if (alone > 0 ? token < alone : !is_padding(run, token)) tokens.push_back(token);
  return tokens;
}

bool is_causal(const ModelInfo& model) { return model.causal || (model.capture && model.capture->causal); }

bool sees(const RunResult& run, const std::int64_t query, const std::int64_t key) {
  if (const std::int64_t alone = queries_alone(run.model); alone > 0) return query < alone && key >= alone;
  return !(is_causal(run.model) && key > query) && !is_padding(run, query) && !is_padding(run, key);
}

std::string token_text(const RunResult& run, const std::size_t token) {
  const std::string& text = run.tokens.at(token).text;
  return run.model.causal ? drawn_token(text) : text;
}

std::vector<ShownToken> shown_tokens(const RunResult& run, const TokenDisplay& display) {
  std::vector<ShownToken> shown;
  const bool text = run.rows == 0;
  int word = -1; // of the last shown token, which the next piece of that word joins
  for (std::size_t i = 0; i < run.tokens.size(); ++i) {
    const TokenInfo& token = run.tokens[i];
    const bool joins = text && display.whole_words && !token.special && token.word >= 0 && token.word == word;
    word = token.special ? -1 : token.word;
    if (text && token.special && !display.special) continue;
    if (joins) {
      if (shown.back().count == 1) shown.back().text = without_hashes(shown.back().text);
      ++shown.back().count;
      shown.back().text += without_hashes(token_text(run, i));
    } else {
      shown.push_back({static_cast<std::int64_t>(i), 1, token_text(run, i)});
    }
  }
  return shown;
}

std::string spaced_text(const RunResult& run, const ShownToken& token) {
  if (!run.model.causal) return token.text;
  std::string text;
  for (std::int64_t i = token.first; i < token.first + token.count; ++i)
    text += run.tokens.at(static_cast<std::size_t>(i)).text;
  return text;
}

std::optional<int> shown_index(std::span<const ShownToken> shown, std::optional<std::int64_t> token) {
  if (!token) return std::nullopt;
  const auto found = std::ranges::find_if(shown, [&](const ShownToken& each) {
    return *token >= each.first && *token < each.first + each.count;
  });
  if (found == shown.end()) return std::nullopt;
  return static_cast<int>(found - shown.begin());
}

bool contains_any(const ShownToken& shown, std::span<const std::int64_t> tokens) {
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
  const auto rows = static_cast<int>(weights.weights.extent(1));
  const auto tokens = static_cast<int>(weights.weights.extent(2));
  // A histogram first: 512 tokens and 12 heads have three million lines, too many to sort.
  constexpr int steps = 1000;
  const auto each = [&](const auto& visit) {
    for (const int head : heads) {
      if (head >= weights.weights.extent(0)) continue;
      const std::span<const float> matrix = weights.weights.slice(head);
      for (int row = 0; row < rows; ++row) {
        const int query =
            weights.rows.empty() ? row : static_cast<int>(weights.rows[static_cast<std::size_t>(row)]);
        for (int key = 0; key < tokens; ++key) {
          if (!pair_shown(pairs, second, query, key)) continue;
          const std::size_t cell = static_cast<std::size_t>(row) * static_cast<std::size_t>(tokens) +
                                   static_cast<std::size_t>(key);
          visit(TokenLine{query, key, head, std::abs(matrix[cell])});
        }
      }
    }
  };
  std::int64_t all = 0;
  each([&](const TokenLine& line) {
    result.strongest = std::max(result.strongest, line.weight);
    if (line.weight > 0) ++all;
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
  result.left_out = all - static_cast<std::int64_t>(result.lines.size());
  std::ranges::sort(result.lines, {}, &TokenLine::weight);
  return result;
}

std::vector<double> row_weights(const WeightsResult& weights, const HeadChoice& head, std::int64_t query) {
  const auto found = std::ranges::find(weights.rows, query);
  if (found == weights.rows.end() || weights.weights.empty()) return {};
  const auto row = static_cast<std::size_t>(found - weights.rows.begin());
  const auto keys = static_cast<std::size_t>(weights.weights.extent(2));
  const std::vector<int> heads = shown_heads(head, static_cast<int>(weights.weights.extent(0)));
  if (heads.empty()) return {};
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
  if (head.fusion == HeadFusion::mean) {
    for (double& value : result) value /= static_cast<double>(heads.size());
  }
  return result;
}

bool same_values(const Array& a, const Array& b) {
  if (a.shape != b.shape || a.values.empty()) return false;
  constexpr float rounding = 1e-5f; // of the largest value
  float largest = 0;
  for (const Array* const array : {&a, &b})
    for (const float value : array->values)
      if (std::abs(value) > largest) largest = std::abs(value);
  return std::ranges::equal(a.values, b.values, [&](float left, float right) {
    if (std::isnan(left) || std::isnan(right)) return std::isnan(left) && std::isnan(right);
    return std::abs(left - right) <= rounding * largest;
  });
}

} // namespace hydrascope::app
