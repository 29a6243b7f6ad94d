// Heads like one of them, as a map of all heads and as a list of the nearest. Plain header.
#pragma once

#include <string>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/run.h"

namespace hydrascope::app {

struct NearHead {
  HeadIndex head;
  double distance = 0;
};

// The `count` nearest others, nearest first; undefined distances are left out.
std::vector<NearHead> nearest_heads(const SimilarHeads& similar, std::size_t count);

// "Jensen–Shannon divergence (nats)" or "1 − cosine of the weights".
std::string distance_quantity(HeadMetric metric);

// Layers × heads.
HeatMapPanel similar_heads_panel(const RunResult& run, const SimilarHeads& similar);
// The map, and the nearest as bars.
Figure similar_heads_figure(const RunResult& run, const SimilarHeads& similar);

} // namespace hydrascope::app
