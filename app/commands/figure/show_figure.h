// Back from a figure that the command line has drawn to what the window shows of it.
#pragma once

#include "app/document/editor.h"

namespace hydrascope::app {

// Opens the input of the figure's command with its model, kernels, layer, head, query and target, as one
// undoable step, and brings the panel that shows its kind to the front. An input that is not where the
// command names it is looked for beside the figure. Says so where the command has no single input, or cannot
// be followed; what was open stays then.
void show_figure(Editor& editor, const ShowFigure& figure);

} // namespace hydrascope::app
