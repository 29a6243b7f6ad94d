// How muted heads look and how they are muted with the pointer, wherever heads are shown.
#pragma once

#include <optional>

#include <imgui.h>

#include "app/document/editor.h"

namespace hydrascope::app {

// A cross over a head's cell or map: what it says does not count.
void muted_cross(ImDrawList* list, ImVec2 from, ImVec2 to);

// The head that a menu is opened on: the one that was under the pointer when the right button went down.
class HeadMenu {
public:
  // Call with every frame, inside the window: what is under the pointer, a head or a layer alone.
  void point(std::optional<HeadIndex> head);
  void point_layer(std::optional<int> layer);
  // The entries, with a separator behind them.
  void draw(Editor& editor) const;

private:
  void keep(std::optional<int> layer, std::optional<int> head);
  std::optional<int> layer_, head_;
};

} // namespace hydrascope::app
