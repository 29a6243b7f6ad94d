#include "app/panels/side_columns.h"

#include <array>

#include "app/ui/widgets.h"

namespace hydrascope::app {

Document seen_from(const Document& document, Side side) {
  Document one = document;
  one.view.shown = side == Side::a ? Shown::a : Shown::b;
  return one;
}

bool SidePair::take(const Snapshot& snapshot) {
  std::array<std::uint64_t, 2> newest{};
  bool stale = false;
  for (std::size_t side = 0; side < newest.size(); ++side) {
    const RunResult* const run = snapshot.results[side]->any();
    if (run == nullptr) return true;
    newest[side] = run->generation;
    stale = stale || snapshot.results[side]->stale;
  }
  if (stale && newest != last_) return false;
  last_ = newest;
  return true;
}

Snapshot without_stale(Snapshot snapshot) {
  static const SideResults none;
  for (const SideResults*& results : snapshot.results)
    if (results->stale) results = &none;
  return snapshot;
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
