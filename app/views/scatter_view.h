// The density of a kernel's weights over softmax's logits: how monotone the kernel is. Plain header.
#pragma once

#include "engine/figures/figure.h"
#include "engine/run/quantities/vectors.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/run.h"

namespace hydrascope::app {

struct ScatterView {
  Array counts; // (rows,columns), the largest weights in the first row; NaN in cells without a pair
  double low_score = 0, high_score = 0;   // q·k/√d at the left and right edge
  double low_weight = 0, high_weight = 0; // at the lower and upper edge
  bool logarithmic = false;               // of the weights
  std::int64_t pairs = 0;
  // Spearman's ρ within each row, ties at their mean rank, mean over rows; a constant row counts as 0. NaN
  // for fewer than three tokens. Of a decoder the rows with three keys and more, those after a query left
  // out.
  double correlation = 0;
  double share_below = 0; // of the scores below −1, where 1 + s + s²/2 (taylor) stops being monotone
};

// The weights of one head, all rows that `weights` has, against q·k/√d from `vectors` (same layer and pass).
// Pairs that have no weight are left out: see sees(). Throws UsageError if either lacks the head.
ScatterView scatter_view(const RunResult& run, const WeightsResult& weights, const VectorsResult& vectors,
                         int head, bool logarithmic);

Figure scatter_figure(const RunResult& run, const WeightsResult& weights, const ScatterView& view, int head);

} // namespace hydrascope::app
