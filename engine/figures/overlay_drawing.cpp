#include <algorithm>
#include <cmath>

#include "engine/figures/panel_drawing.h"

namespace hydrascope {
namespace {

bool has_picture(const OverlayPanel& panel) {
  return panel.image && panel.image->width > 0 && panel.image->height > 0;
}

// The pixels of a photograph's longer side: 200 dpi on the page, sharp in print, with small files for small
// multiples.
int photograph_side(double points) { return std::clamp(static_cast<int>(points / 72 * 200), 64, 1200); }

Box crop_box(const OverlayPanel& panel, const Box& body) {
  const double scale_x = body.width / panel.image->width;
  const double scale_y = body.height / panel.image->height;
  if (panel.crop_width <= 0 || panel.crop_height <= 0) {
    return body;
  }
  return {body.x + panel.crop_x * scale_x, body.y + panel.crop_y * scale_y, panel.crop_width * scale_x,
          panel.crop_height * scale_y};
}

void draw_query(Canvas& canvas, const OverlayPanel& panel, const Ink& ink, const Box& crop) {
  if (!panel.query_row || !panel.query_column || panel.values.empty()) {
    return;
  }
  const auto cell =
      cell_box(panel.values, crop,
               {static_cast<std::size_t>(*panel.query_row), static_cast<std::size_t>(*panel.query_column)});
  if (!cell) return;
  const Box around{cell->x - 0.5, cell->y - 0.5, cell->width + 1, cell->height + 1};
  canvas.outline(around, {0, 0, 0, 0.8f}, 2);
  canvas.outline(around, ink.accent, 1);
}

void draw_largest(Canvas& canvas, const OverlayPanel& panel, const Box& crop) {
  const auto largest = largest_cell(panel.values);
  const auto cell = largest ? cell_box(panel.values, crop, *largest) : std::nullopt;
  if (!cell) return;
  const Point centre{cell->x + cell->width / 2, cell->y + cell->height / 2};
  const double radius = std::max(2.5, 0.5 * std::max(cell->width, cell->height));
  canvas.circle(centre, radius, {0, 0, 0, 1}, 1.7);
  canvas.circle(centre, radius, {1, 1, 1, 1}, 0.8);
}

} // namespace

Surround surround(const OverlayPanel& panel, const Ink& ink, const Placement& placement, const Extent& body) {
  Surround room;
  if (placement.own_bar && !panel.values.empty()) {
    room.right = vertical_bar_room(panel.scale, ink);
  }
  room.below = note_height(panel.note, ink, body.width);
  return room;
}

double body_height(const OverlayPanel& panel, const Ink&, double width) {
  return has_picture(panel) ? width * panel.image->height / panel.image->width : width;
}

void draw(Canvas& canvas, const OverlayPanel& panel, const Ink& ink, const Placement& placement,
          const Box& body) {
  Box crop = body;
  if (has_picture(panel)) {
    canvas.image(photograph_pixels(*panel.image, photograph_side(std::max(body.width, body.height))), body,
                 true);
    crop = crop_box(panel, body);
  }
  if (!panel.values.empty()) {
    const MapPaint paint{.colours = colours_on(ink.ground, panel.scale.map, backdrop_of(panel.mode)),
                         .interpolation = panel.interpolation,
                         .opacity = panel.opacity,
                         .growing = panel.mode == OverlayMode::value};
    canvas.image(map_pixels(panel.values, panel.scale, paint), crop,
                 panel.interpolation != Interpolation::nearest);
  }
  const bool cropped = crop.width < body.width - 0.5 || crop.height < body.height - 0.5;
  if (cropped) {
    canvas.outline(crop, {0, 0, 0, 0.7f}, 1.2);
    canvas.outline(crop, {1, 1, 1, 1}, 0.6);
  }
  if (panel.frame) {
    const double width = 0.3 * ink.size; // outside the picture, so that it hides nothing
    canvas.outline({body.x - width / 2, body.y - width / 2, body.width + width, body.height + width},
                   *panel.frame, width);
  } else {
    canvas.outline(body, ink.rule, 0.5);
  }
  draw_largest(canvas, panel, crop);
  draw_query(canvas, panel, ink, crop);
  if (placement.own_bar && !panel.values.empty()) {
    draw_vertical_bar(canvas, panel.scale, backdrop_of(panel.mode), ink, body);
  }
  draw_note(canvas, panel.note, ink, {body.x, body.bottom()}, body.width);
}

std::optional<PanelItem> item_at(const OverlayPanel& panel, const Ink&, const Box& body, Point point) {
  return panel.values.empty()
             ? std::nullopt
             : cell_at(panel.values, has_picture(panel) ? crop_box(panel, body) : body, point);
}

std::optional<Box> box_of(const OverlayPanel& panel, const Ink&, const Box& body, const PanelItem& item) {
  return panel.values.empty()
             ? std::nullopt
             : cell_box(panel.values, has_picture(panel) ? crop_box(panel, body) : body, item);
}

} // namespace hydrascope
