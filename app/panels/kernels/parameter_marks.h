// The marks of the layer × kernel grid: whether a kernel has trained parameters for a layer.
#pragma once

#include <imgui.h>

#include "app/ui/graphics.h"
#include "app/views/adapter_view.h"

namespace hydrascope::app {

// Filled: trained parameters exist; half filled: for several layers together; hollow: none are needed; a
// cross: it would run untrained.
void draw_mark(ImDrawList* list, ImVec2 centre, float radius, ParameterMark mark);
// A line that names them.
void draw_mark_legend(const Graphics& graphics, float font_size);

} // namespace hydrascope::app
