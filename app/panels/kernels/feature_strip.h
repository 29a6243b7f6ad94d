// A vector as bars, a bar for every feature, on one line of a panel.
#pragma once

#include <optional>

#include <imgui.h>

#include "app/ui/graphics.h"
#include "app/views/vectors_view.h"

namespace hydrascope::app {

struct StripInput {
  std::optional<int> hovered, clicked; // a feature
};

// Name on the left, bars around zero, the sum above them. Where features are narrower than a pixel, a pixel
// shows the largest of those it stands for.
StripInput draw_strip(const char* id, Graphics& graphics, const FeatureStrip& strip, ImVec2 from, ImVec2 size,
                      std::optional<int> marked, const ImVec4& colour, float brightness);

} // namespace hydrascope::app
