// What is shown of a run: which side, which heads, which tokens and how, which lines between tokens. Plain
// header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/run/quantities/head_fusion.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// The two schedules that can be compared on the same input.
enum class Side { a = 0, b = 1 };
// Which of them the panels show.
enum class Shown { a, b, difference, all }; // all: a, b and difference side by side

// "A", "B", "A − B".
const char* side_name(Shown side);
const char* side_name(Side side);
// "attention weight, A − B": the label of a difference of two quantities with this label.
std::string difference_label(const std::string& label);

// One head, or all heads fused.
struct HeadChoice {
  std::optional<int> head; // nullopt: fused
  HeadFusion fusion = HeadFusion::mean;
  std::vector<int> subset = {}; // of the fused heads, ascending; empty: all

  bool operator==(const HeadChoice&) const = default;
  std::string text() const; // "head 3", "mean of heads"
};
// The heads that a choice speaks of, of this many.
std::vector<int> shown_heads(const HeadChoice& choice, int heads);
// `n|mean|min|max`. Throws UsageError.
HeadChoice parse_head(std::string_view text);

// Of a sentence; a picture's tokens are always shown one by one.
struct TokenDisplay {
  bool special = true;      // [CLS] and [SEP] are shown
  bool whole_words = false; // the pieces of a word are shown as one

  bool operator==(const TokenDisplay&) const = default;
};

// One token as it is shown: `count` tokens of the run from `first` on.
struct ShownToken {
  std::int64_t first = 0, count = 1;
  std::string text; // "##ing", "[CLS]"; of several pieces the word
};
std::vector<ShownToken> shown_tokens(const RunResult& run, const TokenDisplay& display);

// Where a token of the run is shown; nullopt if it is not.
std::optional<int> shown_index(std::span<const ShownToken> shown, std::optional<std::int64_t> token);
// Whether a shown token is, or has a piece among, these ascending tokens of the run.
bool any_of_them(const ShownToken& shown, std::span<const std::int64_t> tokens);

// Contributions add up over the pieces of a word: one value for each shown token.
std::vector<double> shown_sums(std::span<const ShownToken> shown, std::span<const float> values);

// Which sentence of a pair the query is in, and which the key.
enum class TokenPairs { all, a_to_a, a_to_b, b_to_a, b_to_b };

struct TokenLine {
  int query = 0, key = 0, head = 0;
  float weight = 0; // |w|
};

// Where the second sentence of a pair begins; nullopt where there is one sentence.
std::optional<int> second_sentence(const RunResult& run);
// Whether the pair of tokens is to be seen; `second` as above.
bool pair_shown(TokenPairs pairs, std::optional<int> second, int query, int key);

// The strongest lines of these heads, at most `most`, weakest first so that the strongest are drawn on top.
// Weights (h,N,N) of all rows; lines below a hundredth of the strongest are left out.
struct TokenLines {
  TokenPairs pairs = TokenPairs::all; // that the filter lets through
  std::vector<TokenLine> lines;
  float strongest = 0;   // of those pairs
  std::int64_t left = 0; // lines left out
};
TokenLines strongest_lines(const WeightsResult& weights, std::span<const int> heads, TokenPairs pairs,
                           std::optional<int> second, std::size_t most);

// The weights of one query row, the heads fused.
std::vector<double> row_weights(const WeightsResult& weights, const HeadChoice& head, std::int64_t query);

} // namespace hydrascope::app
