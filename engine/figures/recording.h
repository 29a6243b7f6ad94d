// What is drawn on it can be drawn again on any canvas, as often as a frame needs it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "engine/figures/canvas.h"

namespace hydrascope {

class Recording final : public Canvas {
public:
  void fill(const Box& box, const Colour& colour, double radius) override;
  void outline(const Box& box, const Colour& colour, double line_width, double radius) override;
  void line(std::span<const Point> points, const Colour& colour, double line_width) override;
  void polygon(std::span<const Point> points, const Colour& colour) override;
  void circle(Point centre, double radius, const Colour& colour, double line_width) override;
  void image(const Pixels& pixels, const Box& box, bool smooth) override;
  void text(std::string_view text, Point baseline, const TextStyle& style, double angle) override;

  // Pictures have the same address each time.
  void replay(Canvas& canvas) const;

private:
  struct Fill {
    Box box;
    Colour colour;
    double radius;
  };
  struct Outline {
    Box box;
    Colour colour;
    double line_width, radius;
  };
  struct Line {
    std::vector<Point> points;
    Colour colour;
    double line_width;
  };
  struct Polygon {
    std::vector<Point> points;
    Colour colour;
  };
  struct Circle {
    Point centre;
    double radius;
    Colour colour;
    double line_width;
  };
  struct Picture {
    Pixels pixels;
    Box box;
    bool smooth;
  };
  struct Text {
    std::string text;
    Point baseline;
    TextStyle style;
    double angle;
  };
  std::vector<std::variant<Fill, Outline, Line, Polygon, Circle, Picture, Text>> shapes_;
};

} // namespace hydrascope
