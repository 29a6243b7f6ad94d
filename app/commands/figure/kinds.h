// The kinds of figure, in one list: what `figure KIND` draws. Plain header.
#pragma once

#include <string_view>
#include <vector>

#include "engine/figures/figure.h"

namespace hydrascope::app {

struct FigureTask; // app/commands/figure/task.h

struct FigureKind {
  const char* name;
  const char* summary; // one line
  // Whether it draws one input (--image or --text); many are then written by a pattern of output names.
  bool of_one_input;
  // Returns a figure with its provenance; without panels if model and schedule have nothing to show. Throws
  // UsageError, Error.
  Figure (*draw)(FigureTask& task);
};

const std::vector<FigureKind>& figure_kinds();
// Throws UsageError.
const FigureKind& figure_kind(std::string_view name);

// ---- One each ----
Figure draw_focus(FigureTask& task);
Figure draw_focus_rows(FigureTask& task); // `focus` of several pictures in one figure
Figure draw_layers(FigureTask& task);
Figure draw_compare(FigureTask& task);
Figure draw_attention(FigureTask& task);
Figure draw_rollout(FigureTask& task);
Figure draw_weights(FigureTask& task);
Figure draw_tokens(FigureTask& task);
Figure draw_vectors(FigureTask& task);
Figure draw_monotonicity(FigureTask& task);
Figure draw_entropy(FigureTask& task);
Figure draw_divergence(FigureTask& task);
// Any quantity per head; the kind is its name.
Figure draw_head_table(FigureTask& task);
Figure draw_table(FigureTask& task);
Figure draw_predictions(FigureTask& task);
Figure draw_timing(FigureTask& task);
Figure draw_scaling(FigureTask& task);
Figure draw_heads(FigureTask& task);
Figure draw_strategies(FigureTask& task);
Figure draw_sheet(FigureTask& task);
Figure draw_loss(FigureTask& task);
Figure draw_roofline(FigureTask& task);
Figure draw_recall(FigureTask& task);

} // namespace hydrascope::app
