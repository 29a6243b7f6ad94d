// What a figure is drawn on: a handful of shapes, in points (1/72 inch), x to the right, y down.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/figures/colour_map.h"

namespace hydrascope {

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
};

// 8-bit red, green, blue, alpha (not premultiplied), top row first.
struct Pixels {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgba;
};

enum class Face { text, mono };

struct TextStyle {
  double size = 8; // points
  bool bold = false;
  Face face = Face::text;
  Colour colour;
};

class Canvas {
public:
  virtual ~Canvas() = default;

  virtual void fill(const Box& box, const Colour& colour, double radius = 0) = 0;
  virtual void outline(const Box& box, const Colour& colour, double line_width, double radius = 0) = 0;
  virtual void line(std::span<const Point> points, const Colour& colour, double line_width) = 0;
  virtual void polygon(std::span<const Point> points, const Colour& colour) = 0;
  virtual void circle(Point centre, double radius, const Colour& colour, double line_width) = 0;
  // Fills the box with the picture; `smooth`: interpolated, otherwise its cells keep hard edges.
  virtual void image(const Pixels& pixels, const Box& box, bool smooth) = 0;
  // One line of text from its baseline's left end; `angle` in degrees, counter-clockwise about that point.
  virtual void text(std::string_view text, Point baseline, const TextStyle& style, double angle = 0) = 0;
};

// Diagonal lines through the box: the sign for masked cells.
void draw_hatch(Canvas& canvas, const Box& box, const Colour& colour);

} // namespace hydrascope
