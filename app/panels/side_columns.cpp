#include "app/panels/side_columns.h"

#include <array>

#include "app/ui/widgets.h"

namespace hydrascope::app {

Document seen_from(const Document& document, Side side) {
  Document one = document;
  one.view.shown = side == Side::a ? Shown::a : Shown::b;
  return one;
}

std::size_t side_tabs(const std::size_t chosen) {
  static const std::array<const char*, 3> sides = {side_name(Shown::a), side_name(Shown::b),
                                                   side_name(Shown::difference)};
  const int clicked = segmented("tab", sides, static_cast<int>(chosen));
  return clicked < 0 ? chosen : static_cast<std::size_t>(clicked);
}

void side_heading(const Graphics& graphics, Shown side) {
  ImGui::PushFont(graphics.fonts().strong, theme::size_small);
  ImGui::TextColored(theme::text, "%s", side_name(side));
  ImGui::PopFont();
}

void missing_notice(const Graphics& graphics, const std::string& error) {
  empty_notice(graphics, error.empty() ? "not there yet" : error);
}

} // namespace hydrascope::app
