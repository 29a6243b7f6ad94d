// Predictions, timing, and entropy or KL by layer and head, as they are drawn. Plain header.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// The first `count` predictions as bars; a second run (B) beside the first lists its own first `count`.
Figure predictions_figure(std::span<const RunResult* const> runs, int count = 5);

// Milliseconds of each layer, in the kernels' colours; cached layers are left out and named in the subtitle.
Figure timing_figure(const RunResult& run);

// Which part of a quantity of several numbers: of the output's change ‖out_kernel‖/‖out_softmax‖, their
// cosine, ‖out_kernel − out_softmax‖/‖out_softmax‖.
enum class ChangeMeasure { ratio, cosine, error };

// Layers × heads heat map of a table of the run.
HeatMapPanel head_table_panel(const RunResult& run, const HeadTable& table,
                              ChangeMeasure measure = ChangeMeasure::error);
// a − b cell by cell on a diverging scale; NaN where either is undefined. Throws UsageError where their
// numbers of heads differ.
HeatMapPanel head_table_difference(const HeatMapPanel& a, const HeatMapPanel& b);
// The same of any two maps of one shape.
HeatMapPanel heat_map_difference(const HeatMapPanel& a, const HeatMapPanel& b);
// All tables of that name, side by side on one scale.
Figure head_table_figure(const RunResult& run, const std::string& name);

} // namespace hydrascope::app
