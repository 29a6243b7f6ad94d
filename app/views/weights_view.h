// Explicit attention weights as they are drawn, in the window and in exported figures alike. Plain header.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/views/shown_tokens.h"
#include "engine/figures/figure.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/run.h"

namespace hydrascope::app {

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

struct WeightsOptions {
  HeadChoice head;
  bool shared_scale = true;    // one scale for all positive kernels; signed ones always have their own
  bool logarithmic = false;    // over four decades below the largest weight
  bool value_weighted = false; // what is shown is ‖α_ij v_j W_o‖: said on the scale
  bool percentile = false;     // up to the 99th percentile of the weights: what lies above looks the same
  TokenDisplay tokens = {};    // a sentence's
  ColourMap map = ColourMap::viridis; // of weights that are not signed
};

// (rows, keys) of one head or of the fused heads. Throws UsageError if the kernel has no such head.
Array head_weights(const WeightsResult& weights, const HeadChoice& head);

// Of one head, or the mean over heads where fused; nats. nullopt for kernels whose weights are not positive.
std::optional<double> weights_entropy(const WeightsResult& weights, const HeadChoice& head);
// KL(softmax ‖ kernel), both clamped at 1e-12 inside the logarithm; nullopt also where heads or rows do not
// match.
std::optional<double> weights_divergence(const WeightsResult& softmax, const WeightsResult& weights,
                                         const HeadChoice& head);

// From 0, or four decades below, up to `high`.
Scale positive_weights_scale(double high, const WeightsOptions& options);

// One heat map of a figure: kernel, entropy and KL against `softmax` (may be null) in its title, tokens on
// its axes.
HeatMapPanel weights_panel(const RunResult& run, const WeightsResult& weights, const WeightsResult* softmax,
                           const WeightsOptions& options = {});

// a − b on a diverging scale. Throws UsageError where their sizes differ.
HeatMapPanel weights_difference(const HeatMapPanel& a, const HeatMapPanel& b);

// All kernels of `run.weights` at `layer`, side by side, in the order asked.
Figure weights_figure(const RunResult& run, int layer, const WeightsOptions& options = {});

// Layer by layer and head by head a row of all kernels of `run.weights` (Hedgehog paper, Fig. 7–20); each
// row's scale is its own unless the options share one. `options.head` is not looked at. A kernel that lacks a
// head leaves its place empty.
Figure weights_grid_figure(const RunResult& run, std::span<const int> layers,
                           std::span<const HeadChoice> heads, const WeightsOptions& options = {});

} // namespace hydrascope::app
