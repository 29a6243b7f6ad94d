// Asks for the name under which the panels' places are kept.
#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "app/document/layouts.h"
#include "app/shell/layout.h"
#include "app/shell/shell.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

void LayoutDialog::draw(Editor& editor, const Graphics& graphics, bool& open) {
  if (!open) {
    was_open_ = false;
    return;
  }
  const bool appearing = !was_open_;
  was_open_ = true;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + 96},
                          ImGuiCond_Appearing, {0.5f, 0});
  ImGui::SetNextWindowSize({360, 0});
  if (appearing) ImGui::SetNextWindowFocus();
  const OverlayStyle style;
  if (ImGui::Begin("Save layout###save_layout", &open,
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                       ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoResize)) {
    if (appearing) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    const bool entered = ImGui::InputTextWithHint("##name", "Name of the layout", &name_,
                                                  ImGuiInputTextFlags_EnterReturnsTrue);
    const bool known = find_layout(editor.settings(), name_) != nullptr;
    small_text(graphics, known ? "Replaces the layout of this name." : "Is listed under View › Layout.");
    ImGui::BeginDisabled(name_.empty());
    if ((ImGui::Button("Save") || entered) && !name_.empty()) {
      save_layout(editor, name_);
      open = false;
      name_.clear();
    }
    ImGui::EndDisabled();
    ImGui::SameLine();
    if (ImGui::Button("Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape)) open = false;
  }
  ImGui::End();
}

} // namespace hydrascope::app
