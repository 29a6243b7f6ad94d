#include "app/panels/side_columns.h"

#include "app/ui/widgets.h"

namespace hydrascope::app {

Document seen_from(const Document& document, Side side) {
  Document one = document;
  one.view.shown = side == Side::a ? Shown::a : Shown::b;
  return one;
}

const char* side_name(Shown side) {
  switch (side) {
    case Shown::a: return "A";
    case Shown::b: return "B";
    case Shown::difference: return "A − B";
    case Shown::all: break;
  }
  return "A | B | A − B";
}

const char* side_name(Side side) { return side_name(side == Side::a ? Shown::a : Shown::b); }

void side_heading(const Graphics& graphics, Shown side) {
  ImGui::PushFont(graphics.fonts().strong, theme::size_small);
  ImGui::TextColored(theme::text, "%s", side_name(side));
  ImGui::PopFont();
}

void missing_notice(const Graphics& graphics, const std::string& error) {
  empty_notice(graphics, error.empty() ? "not there yet" : error);
}

} // namespace hydrascope::app
