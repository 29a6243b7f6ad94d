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

Figure draw_focus_rows(FigureTask& task); // `focus` of several pictures in one figure
Figure draw_head_table(FigureTask& task); // of any quantity per head; the kind is its name

} // namespace hydrascope::app
