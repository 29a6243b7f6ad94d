// What several panels draw: a matrix with axes and zoom, a strip of features, the marks of muted heads.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <imgui.h>

#include "app/document/editor.h"
#include "app/ui/graphics.h"
#include "app/views/vectors_view.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

struct Cell {
  int row = 0, column = 0;
};

// In shares of the matrix, 0…1 down and across.
struct MapZoom {
  double x = 0, y = 0; // of the upper left corner
  double size = 1;     // of the part's sides
  bool operator==(const MapZoom&) const = default;
};

// The wheel zooms at the pointer, a drag with the middle button (or with the space bar held) pans, a
// double-click shows the whole again. Call after the map's button; at least `smallest` of the matrix stays in
// view. Returns whether the pointer pans, so that its button means nothing else.
bool steer(MapZoom& zoom, ImVec2 from, ImVec2 to, double smallest);

// The smallest part that may be shown of a matrix of this many rows: eight of them.
double smallest_part(int rows);

struct MatrixAxes {
  int rows = 0, columns = 0;
  const std::vector<std::string>* y_ticks = nullptr; // one a row, or not shown
  const std::vector<std::string>* x_ticks = nullptr;
};

struct MatrixMarks {
  std::optional<int> row; // the query
  std::optional<int> hovered_row, hovered_column;
};

struct MatrixInput {
  std::optional<Cell> hovered, clicked;
  ImVec2 from, to; // where the cells lie
};

// Draws into the rectangle: tokens beside the rows and under the columns where all that are seen fit, else
// none. `paint` draws the whole matrix over the rectangle it is given, of which only the part in view is
// seen. `zoom` is steered; null: the whole.
MatrixInput draw_matrix(const char* id, Graphics& graphics, const MatrixAxes& axes, ImVec2 from, ImVec2 size,
                        const MatrixMarks& marks, float opacity, MapZoom* zoom,
                        const std::function<void(ImDrawList*, ImVec2, ImVec2)>& paint);

// A matrix with its axes and its numbers under the pointer.
class HeatMapView {
public:
  void set(HeatMapPanel panel);
  void clear() {
    panel_ = {};
    map_.clear();
  }
  bool empty() const { return map_.empty(); }
  const HeatMapPanel& panel() const { return panel_; }
  float value(int row, int column) const { return map_.value(row, column); }

  using Marks = MatrixMarks;
  using Input = MatrixInput;
  // As draw_matrix.
  Input draw(const char* id, Graphics& graphics, ImVec2 from, ImVec2 size, const Marks& marks, float opacity,
             MapZoom* zoom = nullptr);

private:
  HeatMapPanel panel_;
  MapTexture map_;
};

struct StripInput {
  std::optional<int> hovered, clicked; // a feature
};

// Name on the left, bars around zero, the sum above them. Where features are narrower than a pixel, a pixel
// shows the largest of those it stands for.
StripInput draw_strip(const char* id, Graphics& graphics, const FeatureStrip& strip, ImVec2 from, ImVec2 size,
                      std::optional<int> marked, const ImVec4& colour, float brightness);

// A cross over a head's cell or map: what it says does not count.
void muted_cross(ImDrawList* list, ImVec2 from, ImVec2 to);

// The head that a menu is opened on: the one that was under the pointer when the right button went down.
class HeadMenu {
public:
  // Call with every frame, inside the window: what is under the pointer, a head or a layer alone.
  void point(std::optional<HeadIndex> head);
  void point_layer(std::optional<int> layer);
  // The entries, with a separator behind them.
  void draw(Editor& editor) const;

private:
  void keep(std::optional<int> layer, std::optional<int> head);
  std::optional<int> layer_, head_;
};

} // namespace hydrascope::app
