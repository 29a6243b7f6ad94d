// The panels in their docked windows, with the menu that all of them share.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/actions/actions.h"
#include "app/jobs/coordinator.h"
#include "app/panels/panel.h"
#include "app/shell/layout.h"

namespace hydrascope::app {

class PanelWindows {
public:
  explicit PanelWindows(PanelServices services);

  const std::vector<PanelName>& names() const { return names_; }
  // The quantities that the panels in front in the last frame show of a document; nullopt before the first
  // frame.
  std::optional<Requested> requested(const Document& document) const;
  Arrangement& arrangement() { return *arrangement_; }
  std::set<std::string> in_front() const; // ids of the panels that were drawn in the last frame
  // Between frames.
  void before_frame();
  // Within a frame. Returns whether a layout was built, which takes a few frames to settle.
  bool draw(const Snapshot& snapshot, const Coordinator& coordinator);

  // The figure that the panel exports; nullopt if it shows nothing, or results of an earlier input or
  // schedule: the figure would have them beside the present one.
  std::optional<Figure> figure(std::string_view id, const Snapshot& snapshot) const;
  // The panel's rectangle in the last frame, in pixels (x, y, width, height); nullopt if it was not drawn.
  std::optional<std::array<int, 4>> rectangle(std::string_view id) const;

private:
  struct Place {
    std::unique_ptr<Panel> panel;
    bool in_front = false;   // drawn in the last frame
    std::uint64_t stamp = 0; // of the last snapshot it was prepared with
    std::string subject;     // of that snapshot; see subject_key()
  };
  void draw_window(Place& place, const Snapshot& snapshot, const Coordinator& coordinator);
  static void prepare(Place& place, const Snapshot& snapshot);
  void draw_contents(Panel& panel, const Snapshot& snapshot, const Coordinator& coordinator);
  void draw_menu(Panel& panel, const Snapshot& snapshot);
  Editor& editor() const { return *services_.editor; }
  const Place* find(std::string_view id) const;

  PanelServices services_;
  std::vector<Place> places_;
  std::vector<PanelName> names_;
  std::optional<Arrangement> arrangement_;
};

} // namespace hydrascope::app
