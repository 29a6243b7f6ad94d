// Explicit attention weights as heat maps, and weights as words instead of word pieces. Plain header.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/views/selection.h"
#include "engine/base/error.h"
#include "engine/figures/figure.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/run.h"

namespace hydrascope::app {

struct WeightsOptions {
  HeadChoice head;
  bool shared_scale = true;           // one scale for all positive kernels; signed ones always have their own
  bool logarithmic = false;           // over four decades below the largest weight
  bool value_weighted = false;        // the weights are ‖α_ij v_j W_o‖, named so on the scale
  bool percentile = false;            // the scale ends at the 99th percentile of the weights
  TokenDisplay tokens = {};           // of sentences
  ColourMap map = ColourMap::viridis; // of positive weights
};

// Of cross-attention the weights of the queries over the keys, (h,queries,keys); else `weights` itself, which
// lives as long as `run`.
std::shared_ptr<const WeightsResult> weights_of_queries(const RunResult& run, const WeightsResult& weights);

// (rows, keys) of one head or of the fused heads. Throws UsageError if the kernel has no such head.
Array head_weights(const WeightsResult& weights, const HeadChoice& head);

// Entropy in nats of one head, or its mean over fused heads; nullopt for kernels whose weights are not
// positive.
std::optional<double> weights_entropy(const WeightsResult& weights, const HeadChoice& head);
// KL(softmax ‖ kernel) in nats, both clamped at 1e-12 inside the logarithm; nullopt also if heads or rows
// differ.
std::optional<double> weights_divergence(const WeightsResult& softmax, const WeightsResult& weights,
                                         const HeadChoice& head);

// How maps of causal attention are to be read: they end at the diagonal.
inline constexpr const char* causal_note =
    "causal: a token attends to itself and to those before it, not to the grey ones";
// Sets to NaN what causal attention has no weights for: the cells of `values` (rows, columns), which stand
// for the given part of N × N weights, whose keys all come after their queries.
struct WeightsPart {
  std::int64_t first_row = 0, row_count = 0, first_column = 0, column_count = 0;
};
void blank_later_keys(Array& values, const WeightsPart& part);

// What scales call weights, or the lengths that value-weighted ones are.
const char* weights_quantity(bool value_weighted);
// From 0, or for a logarithmic scale from `high`/10⁴, up to `high`.
Scale positive_weights_scale(double high, const WeightsOptions& options);

// A heat map with kernel, entropy and KL against `softmax` (may be null) in its title and tokens on its axes.
// Of causal attention what comes after a query is blank.
HeatMapPanel weights_panel(const RunResult& run, const WeightsResult& weights, const WeightsResult* softmax,
                           const WeightsOptions& options = {});

// a − b on a diverging scale; `value_weighted`: both are. Throws UsageError if their sizes differ.
HeatMapPanel weights_difference(const HeatMapPanel& a, const HeatMapPanel& b, bool value_weighted);

// All kernels' weights of `layer`, side by side in the order of the request.
Figure weights_figure(const RunResult& run, int layer, const WeightsOptions& options = {});

// A row of all kernels for each layer and head (Hedgehog paper, Fig. 7–20). Each row has its own scale unless
// `options.shared_scale`; `options.head` is ignored. The place of a kernel without the head is empty.
Figure weights_grid_figure(const RunResult& run, std::span<const int> layers,
                           std::span<const HeadChoice> heads, const WeightsOptions& options = {});

// Weights (rows, keys) between shown tokens: weights to the pieces of a word are added, weights from its
// pieces are averaged, so that rows still sum to one (Clark et al. 2019, section 4.1). `rows` are the queries
// of the rows; empty: all.
Array shown_weights(const Array& weights, std::span<const std::int64_t> rows,
                    std::span<const ShownToken> shown);

struct ShownWeights {
  std::vector<ShownToken> tokens;
  // (h,R,n), n shown tokens; `rows` are indices into `tokens`. Null: nothing to show.
  std::shared_ptr<const WeightsResult> weights;

  bool whole() const { return weights != nullptr && weights->rows.size() == tokens.size(); }
};

// `weights` belongs to `run`; it is not copied if every token is shown by itself.
ShownWeights shown_weights(const std::shared_ptr<const RunResult>& run, const WeightsResult& weights,
                           const TokenDisplay& display);

// a − b of the same rows. Throws UsageError if heads or tokens differ.
WeightsResult subtract_weights(const WeightsResult& a, const WeightsResult& b);

} // namespace hydrascope::app
