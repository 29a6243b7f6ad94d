// The part of a run that is shown: side, heads, tokens, and lines between tokens. Plain header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
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
// The chosen heads among `heads` of them, ascending.
std::vector<int> shown_heads(const HeadChoice& choice, int heads);
// The choice among the heads that there are; where none of the chosen is, the last of the `heads`.
HeadChoice existing_heads(const HeadChoice& choice, int heads);
// Says that `kernel`, which has so many heads, has none of the chosen; the other throws it then.
UsageError no_such_head(const HeadChoice& choice, int heads, std::string_view kernel);
void require_heads(const HeadChoice& choice, int heads, std::string_view kernel);
// Parses `n|mean|min|max`. Throws UsageError.
HeadChoice parse_head(std::string_view text);
// Of one of grouped heads: "shares keys and values with heads 0–2"; empty where it has its own.
std::string shares_keys_text(const ModelInfo& model, int head);

// How the tokens of a sentence are shown; those of a picture are always shown one by one.
struct TokenDisplay {
  bool special = true;      // [CLS] and [SEP] are shown
  bool whole_words = false; // the pieces of a word are shown as one

  bool operator==(const TokenDisplay&) const = default;
};

// Of cross-attention: how many tokens are queries alone, which come before those that are keys alone. 0: each
// token is both.
std::int64_t queries_alone(const ModelInfo& model);
// The tokens that are queries, ascending: without padding, as which a hidden word counts too, and without
// those that are keys alone.
std::vector<std::int64_t> query_tokens(const RunResult& run);
// Whether no query has a weight on the tokens after it: of a decoder, or of a capture of causal attention.
bool is_causal(const ModelInfo& model);
// Whether the query has a weight on the key: both are such tokens, and in causal attention the key is not
// after the query. The engine's visible_keys() (engine/run/quantities/measures.h) of a run.
bool sees(const RunResult& run, std::int64_t query, std::int64_t key);

// A token of the run as lists and axes show it; of a decoder see engine/figures/token_text.h.
std::string token_text(const RunResult& run, std::size_t token);

// `count` consecutive tokens of the run, shown as one.
struct ShownToken {
  std::int64_t first = 0, count = 1;
  std::string text; // "##ing", "[CLS]", or the whole word; as token_text()
};
std::vector<ShownToken> shown_tokens(const RunResult& run, const TokenDisplay& display);
// Its text, of a decoder with the spaces and line breaks that the tokens carry (TokensPanel::own_spaces).
std::string spaced_text(const RunResult& run, const ShownToken& token);

// The index in `shown` of a token of the run; nullopt if it is not shown.
std::optional<int> shown_index(std::span<const ShownToken> shown, std::optional<std::int64_t> token);
// Whether one of the run's tokens behind a shown token is among `tokens`, which ascend.
bool contains_any(const ShownToken& shown, std::span<const std::int64_t> tokens);

// One value for each shown token: the sum over its tokens, as contributions add up.
std::vector<double> shown_sums(std::span<const ShownToken> shown, std::span<const float> values);

// The sentences (A, B) of the query and the key.
enum class TokenPairs { all, a_to_a, a_to_b, b_to_a, b_to_b };

struct TokenLine {
  int query = 0, key = 0, head = 0;
  float weight = 0; // |w|
};

// The token at which the second sentence of a pair begins; nullopt if there is only one sentence.
std::optional<int> second_sentence(const RunResult& run);
// Whether the filter lets the pair through; `second` as second_sentence returns it.
bool pair_shown(TokenPairs pairs, std::optional<int> second, int query, int key);

struct TokenLines {
  TokenPairs pairs = TokenPairs::all; // the filter
  std::vector<TokenLine> lines;       // weakest first, so that the strongest are drawn on top
  float strongest = 0;                // the largest weight that the filter lets through
  std::int64_t left_out = 0;          // number of lines
};
// The strongest lines of `heads`, at most `most`, from weights (h,N,N) of all rows. Lines below a hundredth
// of the strongest are left out.
TokenLines strongest_lines(const WeightsResult& weights, std::span<const int> heads, TokenPairs pairs,
                           std::optional<int> second, std::size_t most);

// The row of weights of one query, heads fused. Empty if `weights` lacks that row or the heads.
std::vector<double> row_weights(const WeightsResult& weights, const HeadChoice& head, std::int64_t query);

// In place of a difference A − B without any cell that differs.
inline constexpr const char* same_note = "A and B are equal here: there is no difference to show.";
// Whether two arrays are equal up to rounding; NaN equals NaN.
bool same_values(const Array& a, const Array& b);

} // namespace hydrascope::app
