#include "app/window/layout.h"

#include <algorithm>
#include <string>

#include <imgui_internal.h>

namespace hydrascope::app {

void build_explore_layout(ImGuiID dock_space, ImVec2 size) {
  ImGui::DockBuilderRemoveNode(dock_space);
  ImGui::DockBuilderAddNode(dock_space,
                            static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_DockSpace) |
                                static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_NoWindowMenuButton));
  ImGui::DockBuilderSetNodeSize(dock_space, size);
  // Ratios that give the controls the width they need at 1600 pixels and at the smallest usable window.
  const float left_share = std::clamp(300.0f / size.x, 0.15f, 0.3f);
  const float right_share = std::clamp(560.0f / (size.x * (1 - left_share)), 0.3f, 0.46f);
  ImGuiID left = 0, rest = 0, right = 0, centre = 0;
  ImGui::DockBuilderSplitNode(dock_space, ImGuiDir_Left, left_share, &left, &rest);
  ImGui::DockBuilderSplitNode(rest, ImGuiDir_Right, right_share, &right, &centre);
  ImGuiID input = 0, kernels = 0;
  // The kernel grid is to be seen whole; the picture above it takes what is left.
  const float input_share = std::clamp((size.y - 560.0f) / size.y, 0.36f, 0.40f);
  ImGui::DockBuilderSplitNode(left, ImGuiDir_Up, input_share, &input, &kernels);
  ImGuiID predictions = 0, layers = 0, focus = 0;
  ImGui::DockBuilderSplitNode(centre, ImGuiDir_Down, 0.20f, &predictions, &centre);
  ImGui::DockBuilderSplitNode(centre, ImGuiDir_Down, 0.15f, &layers, &focus);
  ImGuiID tables = 0, timing = 0, weights = 0;
  ImGui::DockBuilderSplitNode(right, ImGuiDir_Down, 0.62f, &tables, &weights);
  ImGui::DockBuilderSplitNode(tables, ImGuiDir_Down, 0.48f, &timing, &tables);
  const std::pair<const char*, ImGuiID> places[] = {{"input", input},
                                                    {"kernels", kernels},
                                                    {"focus", focus},
                                                    {"layers", layers},
                                                    {"predictions", predictions},
                                                    {"weights", weights},
                                                    {"entropy", tables},
                                                    {"kl", tables},
                                                    {"timing", timing}};
  for (const auto& [id, node] : places) ImGui::DockBuilderDockWindow(("###" + std::string(id)).c_str(), node);
  ImGui::DockBuilderFinish(dock_space);
}

} // namespace hydrascope::app
