// The labels of a plot's points.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engine/figures/panel_drawing.h"

namespace hydrascope {
namespace {

bool overlap(const Box& a, const Box& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

struct PointLabel {
  Point point;
  const std::string* text = nullptr;
  const LinesPanel::Line* line = nullptr;
  Box box;
  bool strays = false; // of points alone, away from its own point's height: may stand beside another's
};

std::vector<PointLabel> point_labels(const LinesPanel& panel, const Ink& ink, const PlotAxes& axes) {
  std::vector<PointLabel> labels;
  for (const auto& line : panel.lines) {
    for (std::size_t index = 0; index < std::min({line.labels.size(), line.x.size(), line.y.size()});
         ++index) {
      if (!has_place(axes, line.x[index], line.y[index]) || line.labels[index].empty()) continue;
      const Point point = axes.at(line.x[index], line.y[index]);
      if (within(axes.body, point)) labels.push_back({point, &line.labels[index], &line, {}, false});
    }
  }
  std::ranges::stable_sort(labels, {}, [](const PointLabel& label) { return label.point.y; });
  std::vector<Box> taken; // starts with the marks, so that no label covers a point
  for (const PointLabel& label : labels) {
    const double half = 0.3 * ink.size;
    taken.push_back({label.point.x - half, label.point.y - half, 2 * half, 2 * half});
  }
  const double height = line_height(ink.tick()), distance = 0.6 * ink.size;
  for (PointLabel& label : labels) {
    const double width = text_width(*label.text, ink.tick());
    const bool left = label.point.x + distance + width > axes.body.right();
    const double own_y = label.point.y - height / 2;
    Box box{left ? label.point.x - distance - width : label.point.x + distance, own_y, width, height};
    const auto move = [&](const bool down) {
      box.y = own_y;
      for (int tries = 0; tries < 40; ++tries) {
        const auto hit = std::ranges::find_if(taken, [&](const Box& other) { return overlap(box, other); });
        if (hit == taken.end()) break;
        box.y = down ? hit->bottom() + 0.01 : hit->y - height - 0.01;
      }
    };
    move(true);
    if (box.bottom() > axes.body.bottom() && box.y > label.point.y) move(false);
    taken.push_back(box);
    label.box = box;
    label.strays = label.line->style == LinesPanel::Style::points && box.y != own_y;
  }
  return labels;
}

} // namespace

void draw_point_labels(Canvas& canvas, const LinesPanel& panel, const Ink& ink, const PlotAxes& axes) {
  constexpr double readable = 4.5; // contrast of small text (WCAG 2.1, 1.4.3)
  const std::vector<PointLabel> labels = point_labels(panel, ink, axes);
  const bool some_stray = std::ranges::any_of(labels, &PointLabel::strays);
  for (const PointLabel& label : labels) {
    const double middle = label.box.y + label.box.height / 2;
    TextStyle style = ink.tick();
    if (some_stray) style.colour = with_contrast(label.line->colour, ink.ground, readable);
    if (label.strays) {
      const bool left = label.box.x < label.point.x;
      const Point end{left ? label.box.right() + 1 : label.box.x - 1, middle};
      canvas.line(std::array<Point, 2>{{label.point, end}}, style.colour, 0.4);
    }
    canvas.text(*label.text, {label.box.x, middle + 0.36 * style.size}, style);
  }
}

} // namespace hydrascope
