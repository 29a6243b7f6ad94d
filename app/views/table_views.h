// Predictions, tables by layer and head, norms of the hidden states, and similar heads. Plain header.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// A − B of two shares in percentage points with one decimal and a sign; "0.0" for what rounds to zero.
std::string difference_in_points(double a, double b);
// The name of a prediction: a class, or a next token as listed_token().
std::string prediction_name(const RunResult& run, const Prediction& prediction);
// Its probability, or the number where the model predicts one.
std::string prediction_value(const RunResult& run, const Prediction& prediction);
// What hiding tokens and muting heads has changed: "2 hidden: cat 90 % → 40 %". A line for each run of which
// there is something hidden or muted. Each may be null. `with_b`: each line names its side.
std::vector<std::string> effect_lines(const RunResult* a, const RunResult* b, bool with_b);
// The `count` most likely classes or next tokens of each run as bars; null runs are skipped.
Figure predictions_figure(std::span<const RunResult* const> runs, int count = 5);

// The measures of the output's change: ‖out_kernel‖/‖out_softmax‖, their cosine,
// ‖out_kernel − out_softmax‖/‖out_softmax‖.
enum class ChangeMeasure { ratio, cosine, error };

// Layers × heads; `measure` picks the number of a quantity that has several.
HeatMapPanel head_table_panel(const RunResult& run, const HeadTable& table,
                              ChangeMeasure measure = ChangeMeasure::error);
// a − b on a diverging scale; NaN where either is undefined. Throws UsageError if their numbers of heads
// differ.
HeatMapPanel head_table_difference(const HeatMapPanel& a, const HeatMapPanel& b);
// The same for any two maps of one shape.
HeatMapPanel heat_map_difference(const HeatMapPanel& a, const HeatMapPanel& b);
// All tables of this quantity, side by side on one scale.
Figure head_table_figure(const RunResult& run, const std::string& name);

// Hidden states × tokens; the note has the median and the largest norm of the last state. An outlier token is
// many times the median.
HeatMapPanel hidden_norms_panel(const RunResult& run, const Array& norms);
// a − b on a diverging scale. Throws UsageError if their tokens differ.
HeatMapPanel hidden_norms_difference(const HeatMapPanel& a, const HeatMapPanel& b);
Figure hidden_norms_figure(const RunResult& run, const Array& norms);

struct NearHead {
  HeadIndex head;
  double distance = 0;
};

// The `count` nearest other heads, nearest first; undefined distances are left out.
std::vector<NearHead> nearest_heads(const SimilarHeads& similar, std::size_t count);

// "Jensen–Shannon divergence (nats)" or "1 − cosine of the weights".
std::string distance_quantity(HeadMetric metric);

// Distances, layers × heads.
HeatMapPanel similar_heads_panel(const RunResult& run, const SimilarHeads& similar);
// The map, and the nearest heads as bars.
Figure similar_heads_figure(const RunResult& run, const SimilarHeads& similar);

} // namespace hydrascope::app
