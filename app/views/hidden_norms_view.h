// The norm of every token's hidden state, layer by layer, in the window and in exported figures alike. Plain
// header.
#pragma once

#include "engine/figures/figure.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// Hidden states × tokens. The median over tokens and the largest of the last state stand below the map: an
// outlier is many times the median.
HeatMapPanel hidden_norms_panel(const RunResult& run, const Array& norms);
// a − b state by state on a diverging scale. Throws UsageError where their tokens differ.
HeatMapPanel hidden_norms_difference(const HeatMapPanel& a, const HeatMapPanel& b);
Figure hidden_norms_figure(const RunResult& run, const Array& norms);

} // namespace hydrascope::app
