// The kinds of figure, in one list: what `figure KIND` draws.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/commands/figure/options.h"
#include "engine/figures/figure.h"
#include "engine/run/runner.h"

namespace hydrascope::app {

// One figure to be drawn.
struct FigureTask {
  const FigureOptions& options;
  Runner& runner;             // keeps models and hidden states from one figure to the next
  const std::string& command; // for the provenance
  std::vector<std::string> notes = {};
};

struct FigureKind {
  const char* name;
  const char* summary; // one line
  // Draws one input at a time (--image or --text), and so many inputs by a pattern of output names.
  bool of_one_input;
  // A figure with its provenance; without panels where model and schedule have nothing of the kind. Throws
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
// Of any quantity of heads, named by the kind.
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
