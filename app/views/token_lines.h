// The lines between the tokens of a sentence (bertviz's head view): which are worth drawing. Plain header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/views/weights_view.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/run.h"

namespace hydrascope::app {

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
