// Lines over x, as a figure's LinesPanel is drawn in the window.
#pragma once

#include <span>
#include <string>

#include <imgui.h>

#include "app/window/graphics.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// The range of the y axis; low = high: what the lines take.
struct PlotRange {
  double low = 0, high = 0;
};
// Of the lines, with a little room above and below.
PlotRange range_of_lines(const LinesPanel& panel);

// The names of the lines in their colours, beside each other, each with a text after it.
void draw_line_names(const LinesPanel& panel, std::span<const std::string> after, float width);

// Neither panned nor zoomed: all of it is seen at once. Under the pointer the values of the nearest x. Lines
// are in the theme's own colours, by their order: accent, amber, quiet.
void draw_lines(const char* id, Graphics& graphics, const LinesPanel& panel, ImVec2 size, PlotRange range,
                float opacity);

} // namespace hydrascope::app
