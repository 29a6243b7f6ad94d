// Explicit attention weights as they are drawn, in the window and in exported figures alike. Plain header.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/views/selection.h"
#include "engine/figures/figure.h"
#include "engine/run/quantities/head_fusion.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/run.h"

namespace hydrascope::app {

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

// Weights (rows, keys): those towards the pieces of a word add up, those from its pieces are averaged, so
// that rows that summed to one still do (Clark et al. 2019, section 4.1). `rows` names the query of each row;
// empty = all.
Array shown_weights(const Array& weights, std::span<const std::int64_t> rows,
                    std::span<const ShownToken> shown);

struct ShownWeights {
  std::vector<ShownToken> tokens;
  // (h,R,n), n shown tokens; `rows` are indices into `tokens`. Null: nothing is shown.
  std::shared_ptr<const WeightsResult> weights;

  bool whole() const { return weights != nullptr && weights->rows.size() == tokens.size(); }
};

// `weights` belongs to `run`, and is not copied where every token is shown by itself.
ShownWeights shown_weights(const std::shared_ptr<const RunResult>& run, const WeightsResult& weights,
                           const TokenDisplay& display);

// a − b: signed, of the same rows. Throws UsageError where heads or tokens differ.
WeightsResult subtract_weights(const WeightsResult& a, const WeightsResult& b);

} // namespace hydrascope::app
