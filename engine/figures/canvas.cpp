#include "engine/figures/canvas.h"

#include <algorithm>
#include <array>

namespace hydrascope {

void draw_hatch(Canvas& canvas, const Box& box, const Colour& colour) {
  constexpr double spacing = 3;
  // NOLINTNEXTLINE(bugprone-float-loop-counter): whole multiples, exact
  for (double offset = spacing; offset < box.width + box.height; offset += spacing) {
    // The line x + y = offset, cut to the box.
    const double x0 = std::max(0.0, offset - box.height);
    const double x1 = std::min(box.width, offset);
    const std::array<Point, 2> ends{{{box.x + x0, box.y + offset - x0}, {box.x + x1, box.y + offset - x1}}};
    canvas.line(ends, colour, 0.35);
  }
}

} // namespace hydrascope
