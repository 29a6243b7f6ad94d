#include <algorithm>

#include <fmt/format.h>

#include "app/shell/shell.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

void draw_messages(Editor& editor, const Graphics& graphics) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  float bottom = viewport->WorkPos.y + viewport->WorkSize.y - 12;
  constexpr float width = 420;
  constexpr double note_seconds = 4, error_seconds = 12;
  int shown = 0;
  for (std::size_t i = editor.messages().size(); i-- > 0 && shown < 4;) {
    const Message& message = editor.messages()[i];
    const bool error = message.severity == Severity::error;
    const double until = message.seconds + (error ? error_seconds : note_seconds);
    if (editor.clock() >= until) continue;
    ++shown;
    editor.draw_at(until); // to take it away again
    ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x - width - 12, bottom},
                            ImGuiCond_Always, {0, 1});
    ImGui::SetNextWindowSize({width, 0});
    const OverlayStyle style(error ? theme::red : theme::line);
    const std::string name = fmt::format("###message{}", i);
    bool dismissed = false;
    const ImGuiWindowFlags flags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                   ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing |
                                   ImGuiWindowFlags_NoNav;
    if (ImGui::Begin(name.c_str(), nullptr, flags)) {
      ImGui::PushTextWrapPos(width - 16);
      const std::string text =
          message.count > 1 ? fmt::format("{}  (×{})", message.text, message.count) : message.text;
      small_text(graphics, text, error ? theme::red : theme::text);
      ImGui::PopTextWrapPos();
      dismissed = ImGui::IsWindowHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left);
      bottom = ImGui::GetWindowPos().y - 8;
    }
    ImGui::End();
    if (dismissed) {
      editor.dismiss_message(i);
      break;
    }
  }
}

} // namespace hydrascope::app
