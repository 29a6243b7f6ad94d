// A number for every head: layers down, heads across; a click opens that head everywhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/state/editor.h"
#include "app/window/graphics.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

struct HeadTableView {
  HeatMapPanel panel;
  std::vector<std::string> kernels; // by layer
  std::string unit;                 // after a value: "nats"; may be empty
  std::string undefined = "undefined: this kernel's weights are signed";

  bool empty() const { return panel.values.empty(); }
  // Few cells: rectangles of the draw list with their number inside where it fits, a colour bar beside them.
  // Muted heads are crossed; returns the head under the pointer.
  std::optional<HeadIndex> draw(Editor& editor, Graphics& graphics, ImVec2 from, ImVec2 room,
                                float brightness) const;

private:
  bool draw_cell(Editor& editor, ImDrawList* list, ImVec2 at, ImVec2 size, HeadIndex cell, bool numbers,
                 float brightness) const; // whether the pointer is on it
};

} // namespace hydrascope::app
