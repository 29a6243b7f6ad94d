// How well a decoder predicts each token of its text: a strip of the tokens, coloured by their losses. Plain
// header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/views/selection.h"
#include "engine/figures/figure.h"
#include "engine/run/quantities/token_loss.h"
#include "engine/run/run.h"

namespace hydrascope::app {

struct LossOptions {
  TokenDisplay tokens = {};         // a word's loss is the sum of its tokens'
  ColourMap map = ColourMap::magma; // of losses; of differences always the diverging one
};

// One side, ready to draw.
struct LossStrip {
  std::vector<ShownToken> shown;
  TokensPanel panel;       // NaN: the first token, which nothing comes before
  double mean = 0;         // nats a token; NaN for a text of one token
  std::int64_t tokens = 0; // that have a loss
  // "mean 3.21 nats, perplexity 24.8 over 11 tokens"; of a difference both sides'.
  std::string summary;
};

LossStrip loss_strip(const RunResult& run, const TokenLoss& loss, const LossOptions& options = {});
// a − b, red where a's loss is larger. Without values, and with same_note for its note, if they are equal.
// Throws UsageError if their tokens differ.
LossStrip loss_difference(const LossStrip& a, const LossStrip& b);
// Lets all strips' scales end at the largest of their losses.
void share_scale(std::span<LossStrip* const> strips);

// A token's loss, probability and rank among the vocabulary; of several tokens shown as one, each one's.
std::string loss_details(const RunResult& run, const TokenLoss& loss, const ShownToken& token);

struct LossItem {
  const RunResult* run = nullptr;
  const TokenLoss* loss = nullptr;
  std::string title;
};
// A strip for each item on one scale, one below the other.
Figure loss_figure(std::span<const LossItem> items, const LossOptions& options = {});

} // namespace hydrascope::app
