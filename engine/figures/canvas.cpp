#include "engine/figures/canvas.h"

#include <type_traits>

namespace hydrascope {

void Recording::fill(const Box& box, const Colour& colour, double radius) {
  shapes_.emplace_back(Fill{box, colour, radius});
}

void Recording::outline(const Box& box, const Colour& colour, double line_width, double radius) {
  shapes_.emplace_back(Outline{box, colour, line_width, radius});
}

void Recording::line(std::span<const Point> points, const Colour& colour, double line_width) {
  shapes_.emplace_back(Line{{points.begin(), points.end()}, colour, line_width});
}

void Recording::polygon(std::span<const Point> points, const Colour& colour) {
  shapes_.emplace_back(Polygon{{points.begin(), points.end()}, colour});
}

void Recording::circle(Point centre, double radius, const Colour& colour, double line_width) {
  shapes_.emplace_back(Circle{centre, radius, colour, line_width});
}

void Recording::image(const Pixels& pixels, const Box& box, bool smooth) {
  shapes_.emplace_back(Picture{pixels, box, smooth});
}

void Recording::text(std::string_view text, Point baseline, const TextStyle& style, double angle) {
  shapes_.emplace_back(Text{std::string(text), baseline, style, angle});
}

void Recording::replay(Canvas& canvas) const {
  for (const auto& shape : shapes_) {
    std::visit(
        [&](const auto& drawn) {
          using Kind = std::decay_t<decltype(drawn)>;
          if constexpr (std::is_same_v<Kind, Fill>) {
            canvas.fill(drawn.box, drawn.colour, drawn.radius);
          } else if constexpr (std::is_same_v<Kind, Outline>) {
            canvas.outline(drawn.box, drawn.colour, drawn.line_width, drawn.radius);
          } else if constexpr (std::is_same_v<Kind, Line>) {
            canvas.line(drawn.points, drawn.colour, drawn.line_width);
          } else if constexpr (std::is_same_v<Kind, Polygon>) {
            canvas.polygon(drawn.points, drawn.colour);
          } else if constexpr (std::is_same_v<Kind, Circle>) {
            canvas.circle(drawn.centre, drawn.radius, drawn.colour, drawn.line_width);
          } else if constexpr (std::is_same_v<Kind, Picture>) {
            canvas.image(drawn.pixels, drawn.box, drawn.smooth);
          } else {
            canvas.text(drawn.text, drawn.baseline, drawn.style, drawn.angle);
          }
        },
        shape);
  }
}

} // namespace hydrascope
