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

std::string missing_text(const std::string& error) { return error.empty() ? "not there yet" : error; }

void missing_notice(const Graphics& graphics, const std::string& error) {
  empty_notice(graphics, missing_text(error));
}

std::string why_none(const Snapshot& snapshot, Side side) {
  if (!shows_both(snapshot.document->view)) return {};
  const SideResults& results = snapshot.of(side);
  const bool some = results.any() != nullptr;
  if (some && results.fresh && snapshot.computing) return {}; // the failure may be another panel's
  const std::string failure = snapshot.failure(side);
  return some ? failure : missing_text(failure);
}

std::array<std::string, 3> failures_of(const Snapshot& snapshot) {
  std::array<std::string, 3> texts;
  std::string& of_difference = texts[2];
  for (const Side side : {Side::a, Side::b}) {
    if (snapshot.of(side).any() != nullptr) continue;
    texts[static_cast<std::size_t>(side)] = snapshot.failure(side);
    if (of_difference.empty()) of_difference = snapshot.named_failure(side);
  }
  return texts;
}

} // namespace hydrascope::app
