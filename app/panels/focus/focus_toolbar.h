// The Focus panel's controls: which side, which maps, how they are drawn, of which query and target.
#pragma once

#include "app/document/editor.h"

namespace hydrascope::app {

// `run`: what is shown, for the names of its tokens and classes; null before the first one.
void draw_focus_toolbar(Editor& editor, const RunResult* run);

} // namespace hydrascope::app
