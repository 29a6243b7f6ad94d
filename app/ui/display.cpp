#include "app/ui/display.h"

#include <algorithm>

#include <imgui.h>

namespace hydrascope::app {

void set_display_size(int width, int height, float scale) {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = ImVec2(static_cast<float>(width) / scale, static_cast<float>(height) / scale);
  io.DisplayFramebufferScale = ImVec2(static_cast<float>(width) / std::max(io.DisplaySize.x, 1e-3f),
                                      static_cast<float>(height) / std::max(io.DisplaySize.y, 1e-3f));
}

} // namespace hydrascope::app
