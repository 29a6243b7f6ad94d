#include "app/shell/panel_windows.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <imgui.h>
#include <imgui_internal.h>

#include "app/document/edits.h"
#include "app/panels/panel.h"
#include "app/ui/theme.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

// Of the window that is drawn: Dear ImGui scrolls a narrow tab bar to a tab that is clicked, but not to one
// that comes to the front. Returns whether the bar is moving.
bool scroll_to_tab(const bool comes_to_front) {
  const ImGuiWindow* const window = ImGui::GetCurrentWindow();
  ImGuiTabBar* const bar = window->DockNode == nullptr ? nullptr : window->DockNode->TabBar;
  if (bar == nullptr) return false;
  if (comes_to_front) bar->NextScrollToTabId = window->TabId;
  const bool moves = bar->ScrollingAnim != bar->ScrollingTarget;
  bar->ScrollingAnim = bar->ScrollingTarget; // at once: no frames are drawn for it alone
  return comes_to_front || moves;
}

// Without a second close button beside the tab bar: panels have their own, and the View menu.
ImGuiDockNodeFlags dock_flags() {
  return static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_NoWindowMenuButton) |
         static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_NoCloseButton);
}

} // namespace

PanelWindows::PanelWindows(PanelServices services) : services_(services) {
  std::vector<std::string> ids;
  for (auto& panel : make_panels(services)) {
    names_.push_back({panel->id(), panel->title(), panel->exports()});
    ids.push_back(panel->id());
    places_.push_back({.panel = std::move(panel), .subject = {}});
  }
  arrangement_.emplace(std::move(ids));
}

std::optional<Requested> PanelWindows::requested(const Document& document) const {
  if (std::ranges::none_of(places_, &Place::in_front)) return std::nullopt;
  Requested requested;
  for (const Place& place : places_)
    if (place.in_front) place.panel->request(document, requested);
  return of_model(document, std::move(requested));
}

void PanelWindows::before_frame() { arrangement_->before_frame(editor()); }

bool PanelWindows::draw(const Snapshot& snapshot, const Coordinator& coordinator) {
  const ImGuiID dock_space = ImGui::GetID("panels");
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const bool arranged = arrangement_->arrange(dock_space, viewport->WorkSize, editor());
  ImGui::DockSpaceOverViewport(dock_space, viewport, dock_flags());
  editor().next_frame();
  for (Place& place : places_) {
    place.in_front = false;
    if (editor().panel_open(place.panel->id())) draw_window(place, snapshot, coordinator);
  }
  return arranged;
}

std::set<std::string> PanelWindows::in_front() const {
  std::set<std::string> ids;
  for (const Place& place : places_)
    if (place.in_front) ids.insert(place.panel->id());
  return ids;
}

void PanelWindows::draw_window(Place& place, const Snapshot& snapshot, const Coordinator& coordinator) {
  Panel& panel = *place.panel;
  bool stays = true;
  ImGui::PushFont(services_.graphics->fonts().regular, theme::size_text);
  const std::string name = panel.title() + "###" + panel.id();
  const bool comes_to_front = arrangement_->take_focus(panel.id());
  if (comes_to_front) ImGui::SetNextWindowFocus();
  const bool shown = ImGui::Begin(name.c_str(), &stays, ImGuiWindowFlags_NoCollapse);
  if (scroll_to_tab(comes_to_front)) editor().draw_soon();
  if (shown) {
    if (panel.take_outdated() || place.stamp != snapshot.stamp) prepare(place, snapshot);
    place.in_front = true;
    draw_contents(panel, snapshot, coordinator);
  }
  ImGui::End();
  ImGui::PopFont();
  if (!stays) show_panel(editor(), panel.id(), panel.title(), false);
}

void PanelWindows::prepare(Place& place, const Snapshot& snapshot) {
  std::string subject = subject_key(*snapshot.document);
  if (place.subject != subject) { // clears what the panel keeps of the previous subject
    static const SideResults none;
    Document both = *snapshot.document;
    both.view.shown = Shown::all;
    Snapshot nothing = snapshot;
    nothing.document = &both;
    nothing.results = {&none, &none};
    place.panel->prepare(nothing);
  }
  place.panel->prepare(snapshot);
  place.stamp = snapshot.stamp;
  place.subject = std::move(subject);
}

void PanelWindows::draw_contents(Panel& panel, const Snapshot& snapshot, const Coordinator& coordinator) {
  if (panel.needs_model() && is_capture(editor().document().scene()))
    return empty_notice(*services_.graphics,
                        "This panel needs the model. A capture holds only queries, keys and values.");
  if (panel.shows_results()) {
    // The previous result stays during a run. It is dimmed after a moment, or at once if no new result will
    // come.
    Requested requested;
    panel.request(*snapshot.document, requested);
    requested = of_model(*snapshot.document, std::move(requested));
    constexpr double patience = 0.3;
    const std::optional<double> stale = snapshot.stale_seconds();
    const bool old = (stale && *stale >= patience) || coordinator.refused(editor().document(), requested);
    panel.set_freshness(old ? 0.45f : 1.0f);
    if (stale && !old) editor().draw_at(editor().clock() + patience - *stale);
    if (coordinator.lacks(editor().document(), requested)) progress_line(snapshot.progress);
  }
  panel.draw();
  if (panel.exports()) draw_menu(panel, snapshot);
}

void PanelWindows::draw_menu(Panel& panel, const Snapshot& snapshot) {
  // Child windows (columns, lists) count as the panel.
  const bool over =
      ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows | ImGuiHoveredFlags_AllowWhenBlockedByPopup);
  if (over && ImGui::IsMouseReleased(ImGuiMouseButton_Right)) ImGui::OpenPopup("export");
  if (!ImGui::BeginPopup("export")) return;
  panel.draw_menu();
  const bool something = panel.figure().has_value(); // its export waits for what runs
  const bool present = something && figure(panel.id(), snapshot).has_value();
  if (ImGui::MenuItem("Export figure (PNG, SVG, PDF)…", nullptr, false, something))
    editor().emit(ExportFigure{.panel = panel.id(), .file = std::nullopt});
  const std::string& obstacle = editor().status().no_picture_clipboard;
  if (ImGui::MenuItem("Copy figure", nullptr, false, present && obstacle.empty()))
    editor().emit(CopyFigure{panel.id()});
  if (!obstacle.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) text_tooltip(obstacle);
  if (ImGui::MenuItem("Copy numbers", nullptr, false, present)) editor().emit(CopyNumbers{panel.id()});
  ImGui::EndPopup();
}

const PanelWindows::Place* PanelWindows::find(std::string_view id) const {
  const auto found = std::ranges::find(
      places_, id, [](const Place& place) -> std::string_view { return place.panel->id(); });
  return found == places_.end() ? nullptr : &*found;
}

std::optional<Figure> PanelWindows::figure(std::string_view id, const Snapshot& snapshot) const {
  const Place* place = find(id);
  if (place == nullptr || (place->panel->shows_results() && snapshot.stale())) return std::nullopt;
  std::optional<Figure> figure = place->panel->figure();
  return figure && !figure->panels.empty() ? figure : std::nullopt;
}

std::optional<std::array<int, 4>> PanelWindows::rectangle(std::string_view id) const {
  const Place* place = find(id);
  if (place == nullptr || !place->in_front) return std::nullopt;
  const ImGuiWindow* window = ImGui::FindWindowByName(("###" + place->panel->id()).c_str());
  if (window == nullptr) return std::nullopt;
  const ImVec2 density = ImGui::GetIO().DisplayFramebufferScale;
  const auto pixels = [](float points, float scale) { return static_cast<int>(std::lround(points * scale)); };
  return std::array{pixels(window->Pos.x, density.x), pixels(window->Pos.y, density.y),
                    pixels(window->Size.x, density.x), pixels(window->Size.y, density.y)};
}

} // namespace hydrascope::app
