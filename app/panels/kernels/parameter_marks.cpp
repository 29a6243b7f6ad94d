#include "app/panels/kernels/parameter_marks.h"

#include <algorithm>
#include <array>
#include <numbers>
#include <utility>

namespace hydrascope::app {

void draw_mark(ImDrawList* list, ImVec2 centre, float radius, ParameterMark mark) {
  switch (mark) {
    case ParameterMark::trained: list->AddCircleFilled(centre, radius, theme::packed(theme::quiet)); return;
    case ParameterMark::trained_together:
      list->PathArcTo(centre, radius, std::numbers::pi_v<float> / 2, 3 * std::numbers::pi_v<float> / 2);
      list->PathFillConvex(theme::packed(theme::quiet));
      list->AddCircle(centre, radius, theme::packed(theme::quiet), 0, 1);
      return;
    case ParameterMark::none_needed:
      list->AddCircle(centre, radius, theme::packed(theme::quiet), 0, 1);
      return;
    case ParameterMark::untrained: {
      const ImU32 colour = theme::packed(theme::amber, 0.55f);
      const float reach = radius * 0.75f;
      list->AddLine({centre.x - reach, centre.y - reach}, {centre.x + reach, centre.y + reach}, colour, 1);
      list->AddLine({centre.x - reach, centre.y + reach}, {centre.x + reach, centre.y - reach}, colour, 1);
      return;
    }
    case ParameterMark::unknown: break;
  }
  list->AddRectFilled({centre.x - 1.5f, centre.y - 1.5f}, {centre.x + 1.5f, centre.y + 1.5f},
                      theme::packed(theme::faint), 1.0f);
}

void draw_mark_legend(const Graphics& graphics, float font_size) {
  constexpr std::array<std::pair<ParameterMark, const char*>, 4> marks = {
      {{ParameterMark::trained, "trained"},
       {ParameterMark::trained_together, "trained together"},
       {ParameterMark::none_needed, "none needed"},
       {ParameterMark::untrained, "untrained"}}};
  ImGui::PushFont(graphics.fonts().regular, font_size);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight();
  float x = at.x + 6;
  for (const auto& [mark, text] : marks) {
    draw_mark(list, {x + 3, at.y + line / 2}, 3, mark);
    list->AddText({x + 11, at.y}, theme::packed(theme::quiet), text);
    x += 25 + ImGui::CalcTextSize(text).x;
  }
  ImGui::Dummy({x - at.x, line});
  ImGui::PopFont();
}

} // namespace hydrascope::app
