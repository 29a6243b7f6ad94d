// The Weights panel's controls: which heads, which scale, whose q and k, one kernel more.
#pragma once

#include "app/document/editor.h"
#include "app/panels/map_zoom.h"

namespace hydrascope::app {

// `zoom`: of all its maps; can be taken back to the whole.
void draw_weights_toolbar(Editor& editor, MapZoom& zoom);

} // namespace hydrascope::app
