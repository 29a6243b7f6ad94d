#include "engine/figures/canvas.h"

#include <algorithm>
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

Pixels repeated(const Pixels& pixels) {
  constexpr int wanted_side = 600;
  const int longer = std::max({pixels.width, pixels.height, 1});
  const int factor = std::max(1, (wanted_side + longer - 1) / longer);
  if (factor == 1) return pixels;
  constexpr std::size_t channels = 4;
  const auto line = static_cast<std::size_t>(pixels.width * factor) * channels;
  Pixels larger{pixels.width * factor, pixels.height * factor, {}};
  larger.rgba.resize(line * static_cast<std::size_t>(larger.height));
  for (int y = 0; y < larger.height; ++y) {
    std::uint8_t* const target = larger.rgba.data() + static_cast<std::size_t>(y) * line;
    if (y % factor != 0) {
      std::copy_n(target - line, line, target);
      continue;
    }
    const std::uint8_t* const source =
        pixels.rgba.data() + static_cast<std::size_t>(y / factor * pixels.width) * channels;
    for (int x = 0; x < larger.width; ++x)
      std::copy_n(source + static_cast<std::size_t>(x / factor) * channels, channels,
                  target + static_cast<std::size_t>(x) * channels);
  }
  return larger;
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
