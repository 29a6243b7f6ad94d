// Shows A, B or A − B, or the three side by side: a frame around any view.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <imgui.h>

#include "app/panels/panel.h"

namespace hydrascope::app {

// The document with only this side shown.
Document seen_from(const Document& document, Side side);

// Whether the difference of A and B is shown.
inline bool shows_both(const ViewOptions& view) {
  return view.shown == Shown::difference || view.shown == Shown::all;
}

// Calls request_one(document as seen from a side, whether it is one of two) for each side shown. Every run
// gets the requests of both sides.
template <typename RequestOne>
void request_sides(const Document& document, const RequestOne& request_one) {
  if (!shows_both(document.view)) return request_one(document, false);
  for (const Side side : {Side::a, Side::b}) request_one(seen_from(document, side), true);
}

// Chooses the column of three that is shown where a panel is too narrow for all. Returns the choice.
std::size_t side_tabs(std::size_t chosen);
// The heading of one column of several.
void side_heading(const Graphics& graphics, Shown side);
// What stands in the place of a column without results: the error, or that it is not there yet.
std::string missing_text(const std::string& error);
// Fills the place with it.
void missing_notice(const Graphics& graphics, const std::string& error = {});
// Why a side's column is empty in a comparison, where its results lack what the panel shows; empty: the panel
// keeps the last results.
std::string why_none(const Snapshot& snapshot, Side side);
// The failures of A, B and A − B (which names the side); each empty where there are results, or may be some.
std::array<std::string, 3> failures_of(const Snapshot& snapshot);

// A View is the content of one column. It has
//   void prepare(const Snapshot&)               for the one side that the snapshot's document shows;
//   void subtract(const View& a, const View& b) to become A − B; optionally takes the snapshot of both, too;
//   void clear()                                optional: called when the view appears or disappears.
template <typename View>
class SideColumns {
public:
  SideColumns() = default;
  // Three views, each constructed from `from`.
  template <typename... From>
  explicit SideColumns(const From&... from) requires std::constructible_from<View, const From&...>
      : views_{View(from...), View(from...), View(from...)} {}

  void prepare(const Snapshot& snapshot) {
    failures_ = failures_of(snapshot);
    const Shown shown = snapshot.document->view.shown;
    if (shown == Shown::a || shown == Shown::b) {
      show(shown == Shown::a ? 0 : 1, 1);
      views_[first_].prepare(snapshot);
      return;
    }
    show(shown == Shown::difference ? 2 : 0, shown == Shown::difference ? 1 : 3);
    for (const Side side : {Side::a, Side::b}) {
      const Document document = seen_from(*snapshot.document, side);
      Snapshot part = snapshot;
      part.document = &document;
      part.one_of_two = true;
      views_[static_cast<std::size_t>(side)].prepare(part);
    }
    if constexpr (requires { views_[2].subtract(views_[0], views_[1], snapshot); }) {
      views_[2].subtract(views_[0], views_[1], snapshot);
    } else {
      views_[2].subtract(views_[0], views_[1]);
    }
  }
  void clear() { std::ranges::for_each(views_, &View::clear); }

  std::span<View> shown() { return std::span(views_).subspan(first_, count_); }
  std::span<const View> shown() const { return std::span(views_).subspan(first_, count_); }

  // Calls draw_one(view) for each view shown, or writes why it is empty where its side has failed; each of
  // several has a heading and a child window of its own, which is not too low: the panel scrolls. Where each
  // would be narrower than `least_width`, the user chooses one of them.
  template <typename DrawOne>
  void draw(const Graphics& graphics, const DrawOne& draw_one, float least_width = 110) {
    has_tabs_ = false;
    const auto draw_at = [&](std::size_t place) {
      if (has_failed(place)) return missing_notice(graphics, failures_[place]);
      draw_one(views_[place]);
    };
    if (count_ == 1) return draw_at(first_);
    const ImVec2 from = ImGui::GetCursorScreenPos();
    ImVec2 size = ImGui::GetContentRegionAvail();
    constexpr float gap = theme::grid * 2, least_height = 84;
    const auto count = static_cast<float>(count_);
    size.y = std::max(size.y, least_height);
    size.x = (size.x - gap * (count - 1)) / count;
    has_tabs_ = size.x < least_width;
    if (has_tabs_) {
      tab_ = side_tabs(tab_);
      return draw_at(tab_);
    }
    for (std::size_t i = 0; i < count_; ++i) {
      const ImVec2 at{from.x + static_cast<float>(i) * (size.x + gap), from.y};
      ImGui::SetCursorScreenPos(at);
      ImGui::PushID(static_cast<int>(first_ + i));
      ImGui::BeginChild("side", size, ImGuiChildFlags_None, ImGuiWindowFlags_NoScrollbar);
      side_heading(graphics, static_cast<Shown>(i));
      draw_at(first_ + i);
      ImGui::EndChild();
      ImGui::PopID();
    }
  }

  // One figure of all views that are not empty(): the panels of figure_one(view), which may have none.
  template <typename FigureOne>
  std::optional<Figure> figure(const FigureOne& figure_one) const {
    std::optional<Figure> all;
    for (const View& view : shown()) {
      if (view.empty()) continue;
      Figure one = figure_one(view);
      if (one.panels.empty()) continue;
      if (!all) {
        all = std::move(one);
      } else {
        std::ranges::move(one.panels, std::back_inserter(all->panels));
      }
    }
    return all;
  }
  // Whether draw() has nothing to show, nor a failure.
  bool empty() const {
    for (std::size_t place = first_; place < first_ + count_; ++place)
      if (!views_[place].empty() || has_failed(place)) return false;
    return true;
  }
  // What stands in the place of a view that is empty, one of shown(): why its side has failed, or that its
  // results are not there yet.
  std::string why_empty(std::size_t index) const { return missing_text(failures_[first_ + index]); }
  // Why there are not all results: of several sides the first failure, with its side's name; may be empty.
  const std::string& failure() const { return failures_[count_ > 1 ? 2 : first_]; }
  // Whether draw() has put the choice of one of three above the view.
  bool has_tabs() const { return has_tabs_; }

private:
  bool has_failed(std::size_t place) const { return !failures_[place].empty() && views_[place].empty(); }
  // Clears the views that appear and disappear.
  void show(std::size_t first, std::size_t count) {
    if (first == first_ && count == count_) return;
    if constexpr (requires { views_[0].clear(); }) {
      for (std::size_t i = 0; i < views_.size(); ++i) {
        const bool was_shown = i >= first_ && i < first_ + count_;
        if (!was_shown || i < first || i >= first + count) views_[i].clear();
      }
    }
    first_ = first;
    count_ = count;
  }

  std::array<View, 3> views_;           // A, B, A − B
  std::array<std::string, 3> failures_; // likewise
  std::size_t first_ = 0, count_ = 1;
  std::size_t tab_ = 0; // the only one drawn in a narrow panel that shows all
  bool has_tabs_ = false;
};

} // namespace hydrascope::app
