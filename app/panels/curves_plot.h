// Curves that grow while they are looked at, as a figure's LinesPanel is drawn in the window.
#pragma once

#include <imgui.h>

#include "app/window/graphics.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// All of them are seen at once, in their own colours. Under the pointer the nearest point is named. Of more
// lines than a legend has room for, the first and the last stand for those between.
void draw_curves(const char* id, const Graphics& graphics, const LinesPanel& panel, ImVec2 size);

} // namespace hydrascope::app
