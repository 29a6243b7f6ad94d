// What happens to a frame's draw data between Dear ImGui and OpenGL: text is moved onto whole pixel rows, and
// only the part that differs from the previous frame is drawn. That keeps frames short where OpenGL runs on
// the processor: most frames change a progress line or a tooltip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <imgui.h>

namespace hydrascope::app {

// A rectangle on the screen, in Dear ImGui's points.
struct ScreenBox {
  ImVec2 from, to;

  bool empty() const { return from.x >= to.x || from.y >= to.y; }
  float area() const { return empty() ? 0 : (to.x - from.x) * (to.y - from.y); }
  bool operator==(const ScreenBox& other) const {
    return from.x == other.from.x && from.y == other.from.y && to.x == other.to.x && to.y == other.to.y;
  }
};
ScreenBox united(const ScreenBox& left, const ScreenBox& right);
ScreenBox intersected(const ScreenBox& left, const ScreenBox& right);

// A triangle, or a rectangle of two, as it is drawn: equal ones, their state included, have the same hash.
struct DrawnPiece {
  std::uint64_t hash = 0;
  ScreenBox box;
  bool operator==(const DrawnPiece& other) const { return hash == other.hash; }
};

// Finds the damage of each frame: the part of the screen that changed.
class DamageTracker {
public:
  // Returns a few boxes outside of which every pixel equals the previous frame's. Compares draw lists
  // piece by piece but never reads texels: new texels need a new texture.
  std::vector<ScreenBox> update(const ImDrawData& data);

private:
  struct List { // a copy of a draw list
    std::string owner;
    std::vector<ImDrawCmd> commands;
    std::vector<ImDrawVert> vertices;
    std::vector<ImDrawIdx> indices;
    std::vector<DrawnPiece> pieces;
  };
  std::vector<List> lists_;
  std::vector<DrawnPiece> pieces_; // of the list being compared
  ImVec2 size_, scale_;
};

// Draws `data` into the bound framebuffer (`height` pixels high) over the colour `ground`, inside the boxes
// only.
void draw_boxes(const ImDrawData& data, std::span<const ScreenBox> boxes, int height, const ImVec4& ground);

// Moves upright letters to the nearest pixel row. Dear ImGui places text on whole points; at a UI scale
// of 1.25 most of those lie between two pixel rows, and every letter would be blurred. Does nothing at whole
// scales.
void snap_text_rows(ImDrawData& data);

} // namespace hydrascope::app
