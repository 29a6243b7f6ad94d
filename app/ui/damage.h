// Which part of a frame differs from the one before. Drawing only that keeps frames short where the graphics
// card is the processor: most frames change a progress line or a tooltip.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <imgui.h>

namespace hydrascope::app {

// A rectangle in Dear ImGui's points.
struct Box {
  ImVec2 from, to;

  bool empty() const { return from.x >= to.x || from.y >= to.y; }
  float area() const { return empty() ? 0 : (to.x - from.x) * (to.y - from.y); }
  bool operator==(const Box& other) const {
    return from.x == other.from.x && from.y == other.from.y && to.x == other.to.x && to.y == other.to.y;
  }
};
Box united(const Box& left, const Box& right);
Box intersected(const Box& left, const Box& right);

class Damage {
public:
  // What of this frame differs from the one before: few boxes, outside of which every pixel is as it was.
  // Draw lists are compared triangle by triangle. Texels are not looked at: whoever has new ones draws with a
  // new texture.
  std::vector<Box> update(const ImDrawData& data);
  // All of the next frame counts as changed.
  void forget() { lists_.clear(); }

private:
  struct List { // a draw list as it was drawn
    std::string owner;
    std::vector<ImDrawCmd> commands;
    std::vector<ImDrawVert> vertices;
    std::vector<ImDrawIdx> indices;
  };
  std::vector<List> lists_;
  ImVec2 size_, scale_;
};

// Draws `data` into the framebuffer bound, `height` pixels high, inside the boxes only, over `ground`.
void draw_boxes(const ImDrawData& data, std::span<const Box> boxes, int height, const ImVec4& ground);

} // namespace hydrascope::app
