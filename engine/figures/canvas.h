// A surface for figures: a handful of shapes, in points (1/72 inch), x to the right, y down.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
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

// Each pixel repeated a whole number of times, to 600 or more on the longer side: viewers of files
// interpolate between pixels, and the cells of a map have to keep hard edges.
Pixels repeated(const Pixels& pixels);

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

// Stores what is drawn on it, to be drawn again on any canvas as often as a frame needs it.
class Recording final : public Canvas {
public:
  void fill(const Box& box, const Colour& colour, double radius) override;
  void outline(const Box& box, const Colour& colour, double line_width, double radius) override;
  void line(std::span<const Point> points, const Colour& colour, double line_width) override;
  void polygon(std::span<const Point> points, const Colour& colour) override;
  void circle(Point centre, double radius, const Colour& colour, double line_width) override;
  void image(const Pixels& pixels, const Box& box, bool smooth) override;
  void text(std::string_view text, Point baseline, const TextStyle& style, double angle) override;

  // Draws everything in the same order. The pictures have the same address every time.
  void replay(Canvas& canvas) const;

private:
  struct Fill {
    Box box;
    Colour colour;
    double radius = 0;
  };
  struct Outline {
    Box box;
    Colour colour;
    double line_width = 0, radius = 0;
  };
  struct Line {
    std::vector<Point> points;
    Colour colour;
    double line_width = 0;
  };
  struct Polygon {
    std::vector<Point> points;
    Colour colour;
  };
  struct Circle {
    Point centre;
    double radius = 0;
    Colour colour;
    double line_width = 0;
  };
  struct Picture {
    Pixels pixels;
    Box box;
    bool smooth = false;
  };
  struct Text {
    std::string text;
    Point baseline;
    TextStyle style;
    double angle = 0;
  };
  std::vector<std::variant<Fill, Outline, Line, Polygon, Circle, Picture, Text>> shapes_;
};

} // namespace hydrascope
