// Measuring and drawing each kind of panel. A panel has a body (the map, the picture, the plot) and room
// around it for ticks, labels and its colour bar; layout.cpp aligns the bodies of a figure.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "engine/figures/canvas.h"
#include "engine/figures/figure.h"
#include "engine/figures/scale.h"
#include "engine/figures/text.h"

namespace hydrascope {

// Sizes, all derived from the text size, and colours of a figure's ink.
struct Ink {
  double size = 8; // points
  Colour text{0.10f, 0.10f, 0.11f, 1};
  Colour muted{0.38f, 0.38f, 0.40f, 1};
  Colour rule{0.55f, 0.55f, 0.57f, 1};
  Colour grid{0.88f, 0.88f, 0.89f, 1};
  Colour accent{0.84f, 0.15f, 0.16f, 1};
  Colour ground{1, 1, 1, 1};
  Colour shade{0.890f, 0.900f, 0.914f, 1}; // of cells that cannot have a number
  double contrast = 0;                     // minimum contrast of lines and bars to the ground
  double least = 0;                        // minimum text size in points

  TextStyle title() const { return {size * 1.25, true, Face::text, text}; }
  TextStyle panel_title() const { return {size, true, Face::text, text}; }
  TextStyle label() const { return {size, false, Face::text, text}; }
  TextStyle note() const { return {std::max(least, size * 0.875), false, Face::text, muted}; }
  TextStyle tick() const { return {std::max(least, size * 0.8), false, Face::text, muted}; }
  TextStyle token() const { return {std::max(least, size * 0.75), false, Face::mono, text}; }
  // The colour of a line or bar, adjusted to the minimum contrast.
  Colour mark(const Colour& colour) const {
    return contrast > 0 ? with_contrast(colour, ground, contrast) : colour;
  }
};

// For a figure's page: black on white, or the window's dark theme.
Ink page_ink(const FigureStyle& style);

// Of a body, in points.
struct Extent {
  double width = 0, height = 0;
};

// The room around a body, in points.
struct Surround {
  double left = 0, right = 0, below = 0;
};

// The parts of a panel that its neighbours may draw for it.
struct Placement {
  bool own_bar = true;    // draws its own colour bar
  bool names_rows = true; // draws row labels (false: the panel to its left has the same)
  double legend = 0;      // the most width of a plot's legend, whose names are shortened to it; 0: any
};

// A part of a panel that shows one number.
struct PanelItem {
  std::size_t index = 0;  // of a cell's row, a word, a bar, a table's row, a line
  std::size_t within = 0; // of a cell's column, a table's column, a line's point
  bool operator==(const PanelItem&) const = default;
};

const Scale* scale_of(const FigurePanel& panel); // null where nothing is mapped to colours
Backdrop backdrop_of(const FigurePanel& panel);
const std::string& title_of(const FigurePanel& panel);

// The body's extent is known once all surrounds of the row are.
Surround surround(const FigurePanel& panel, const Ink& ink, const Placement& placement, const Extent& body);
double body_height(const FigurePanel& panel, const Ink& ink, double width); // by itself, on a page
void draw_panel(Canvas& canvas, const FigurePanel& panel, const Ink& ink, const Placement& placement,
                const Box& body);
// The item at a point, and an item's box; nullopt without one.
std::optional<PanelItem> item_at(const FigurePanel& panel, const Ink& ink, const Box& body, Point point);
std::optional<Box> box_of(const FigurePanel& panel, const Ink& ink, const Box& body, const PanelItem& item);

// One kind each.
Surround surround(const HeatMapPanel& panel, const Ink& ink, const Placement& placement, const Extent& body);
Surround surround(const OverlayPanel& panel, const Ink& ink, const Placement& placement, const Extent& body);
Surround surround(const TokensPanel& panel, const Ink& ink, const Placement& placement, const Extent& body);
Surround surround(const BarsPanel& panel, const Ink& ink, const Placement& placement, const Extent& body);
Surround surround(const LinesPanel& panel, const Ink& ink, const Placement& placement, const Extent& body);
Surround surround(const TablePanel& panel, const Ink& ink, const Placement& placement, const Extent& body);
double body_height(const HeatMapPanel& panel, const Ink& ink, double width);
double body_height(const OverlayPanel& panel, const Ink& ink, double width);
double body_height(const TokensPanel& panel, const Ink& ink, double width);
double body_height(const BarsPanel& panel, const Ink& ink, double width);
double body_height(const LinesPanel& panel, const Ink& ink, double width);
double body_height(const TablePanel& panel, const Ink& ink, double width);
void draw(Canvas& canvas, const HeatMapPanel& panel, const Ink& ink, const Placement& placement,
          const Box& body);
void draw(Canvas& canvas, const OverlayPanel& panel, const Ink& ink, const Placement& placement,
          const Box& body);
void draw(Canvas& canvas, const TokensPanel& panel, const Ink& ink, const Placement& placement,
          const Box& body);
void draw(Canvas& canvas, const BarsPanel& panel, const Ink& ink, const Placement& placement,
          const Box& body);
void draw(Canvas& canvas, const LinesPanel& panel, const Ink& ink, const Placement& placement,
          const Box& body);
void draw(Canvas& canvas, const TablePanel& panel, const Ink& ink, const Placement& placement,
          const Box& body);

std::optional<PanelItem> item_at(const HeatMapPanel& panel, const Ink& ink, const Box& body, Point point);
std::optional<PanelItem> item_at(const OverlayPanel& panel, const Ink& ink, const Box& body, Point point);
std::optional<PanelItem> item_at(const TokensPanel& panel, const Ink& ink, const Box& body, Point point);
std::optional<PanelItem> item_at(const BarsPanel& panel, const Ink& ink, const Box& body, Point point);
std::optional<PanelItem> item_at(const LinesPanel& panel, const Ink& ink, const Box& body, Point point);
std::optional<PanelItem> item_at(const TablePanel& panel, const Ink& ink, const Box& body, Point point);
std::optional<Box> box_of(const HeatMapPanel& panel, const Ink& ink, const Box& body, const PanelItem& item);
std::optional<Box> box_of(const OverlayPanel& panel, const Ink& ink, const Box& body, const PanelItem& item);
std::optional<Box> box_of(const TokensPanel& panel, const Ink& ink, const Box& body, const PanelItem& item);
std::optional<Box> box_of(const BarsPanel& panel, const Ink& ink, const Box& body, const PanelItem& item);
std::optional<Box> box_of(const LinesPanel& panel, const Ink& ink, const Box& body, const PanelItem& item);
std::optional<Box> box_of(const TablePanel& panel, const Ink& ink, const Box& body, const PanelItem& item);

// The height of a plot's body on a page by its width; it is higher where the legend needs more.
inline constexpr double plot_aspect = 0.6;

// A plot's two axes in its body.
struct PlotAxes {
  Box body;
  Scale across, up;
  Point at(double x, double y) const; // outside the body where the value lies beyond its axis
  Point value(Point point) const;
};
PlotAxes plot_axes(const LinesPanel& panel, const Box& body);
// Whether both numbers lie on their axes: on a logarithmic one 0 and what is negative do not.
bool has_place(const PlotAxes& axes, double x, double y);
bool within(const Box& body, Point point); // its edges belong to it

// Labels right of the points or, near the right edge, left of them; moved down where they would overlap, or
// up where that leads out of the plot. Where some stray, all have their points' colours, and lines lead from
// those back to their points.
void draw_point_labels(Canvas& canvas, const LinesPanel& panel, const Ink& ink, const PlotAxes& axes);

// ---- Shared pieces ----
enum class Align { left, centre, right };
void draw_aligned(Canvas& canvas, std::string_view text, Point baseline, const TextStyle& style, Align align);
// Draws lines from `top` downwards; returns their height.
double draw_lines(Canvas& canvas, const std::vector<std::string>& lines, Point top, const TextStyle& style,
                  Align align = Align::left);

// At most `most` ticks along a body's lower or left edge: as many as leave room between their texts.
std::vector<Tick> ticks_across(double low, double high, bool logarithmic, int most, double width,
                               const Ink& ink);
std::vector<Tick> ticks_up(double low, double high, bool logarithmic, int most, double height,
                           const Ink& ink);
bool fit_across(const std::vector<Tick>& marks, double width, const Ink& ink);

// A note in small print below a body: its height including the gap above it, 0 without a note; and drawing
// it, which returns the height of its lines.
double note_height(const std::string& note, const Ink& ink, double width);
double draw_note(Canvas& canvas, const std::string& note, const Ink& ink, Point top_left, double width);

// Diagonal lines through the box: masked cells.
void draw_hatch(Canvas& canvas, const Box& box, const Colour& colour);

// How the cells of a map are painted.
struct MapPaint {
  ColourTable colours = {};
  Interpolation interpolation = Interpolation::nearest;
  float opacity = 1;
  bool growing = false; // the opacity grows with the value, from 0
};
// The cells of a (rows, columns) map, as the window's shader colours them (shaders/colour_map.frag); NaN is
// transparent. A pixel a cell without interpolation; else many, of values between the cells.
Pixels map_pixels(const Array& values, const Scale& scale, const MapPaint& paint);
// The picture with at most `max_pixels` on its longer side.
Pixels photograph_pixels(const Image& image, int max_pixels);

// The cell of largest magnitude; nullopt if all are zero.
std::optional<PanelItem> largest_cell(const Array& values);

bool contains(const Box& box, Point point);
// Cells of a (rows, columns) map that fills the body.
std::optional<PanelItem> cell_at(const Array& values, const Box& body, Point point);
std::optional<Box> cell_box(const Array& values, const Box& body, const PanelItem& item);

// Text turned by 90° at x, in the middle of the box's height; smaller where it is longer than that, and left
// out where it would be illegible.
void draw_beside(Canvas& canvas, const std::string& text, double x, const Box& box, TextStyle style);

// A vertical colour bar right of `beside`, with ticks and label to its right; and the width of all that.
double vertical_bar_room(const Scale& scale, const Ink& ink);
void draw_vertical_bar(Canvas& canvas, const Scale& scale, Backdrop backdrop, const Ink& ink,
                       const Box& beside);
// A horizontal colour bar with ticks below it, and the height of both.
double horizontal_bar_room(const Ink& ink);
void draw_horizontal_bar(Canvas& canvas, const Scale& scale, Backdrop backdrop, const Ink& ink,
                         Point top_left, double width);

} // namespace hydrascope
