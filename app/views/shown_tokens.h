// Which tokens are shown, and how: a display choice that leaves the run as it is. Plain header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/run/run.h"

namespace hydrascope::app {

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
// Weights (rows, keys): those towards the pieces of a word add up, those from its pieces are averaged, so
// that rows that summed to one still do (Clark et al. 2019, section 4.1). `rows` names the query of each row;
// empty = all.
Array shown_weights(const Array& weights, std::span<const std::int64_t> rows,
                    std::span<const ShownToken> shown);

} // namespace hydrascope::app
