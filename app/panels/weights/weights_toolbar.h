// The controls above the matrices of weights.
#pragma once

#include "app/document/editor.h"
#include "app/panels/map_views.h"

namespace hydrascope::app {

// `zoom` is that of all maps; a button resets it. `why_own`: why the maps cannot share a scale; empty if they
// can.
void draw_weights_toolbar(Editor& editor, MapZoom& zoom, const char* why_own);

} // namespace hydrascope::app
