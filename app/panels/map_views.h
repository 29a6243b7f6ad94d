// Drawings that several panels share: a matrix with axes and zoom, a strip of features, marks of muted heads.
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

// The visible square part of a matrix, as shares of its sides, 0…1.
struct MapZoom {
  double x = 0, y = 0; // upper left corner
  double size = 1;     // side
  bool operator==(const MapZoom&) const = default;
};

// The wheel zooms at the pointer, a drag with the middle button (or with the space bar held) pans, a
// double-click shows the whole matrix. Call it after the map's button. zoom.size does not go below
// `smallest`. Returns whether the pointer pans, in which case a click has no other effect.
bool update_zoom(MapZoom& zoom, ImVec2 from, ImVec2 to, double smallest);

// The smallest zoom.size of a matrix with this many rows: eight rows.
double smallest_zoom(int rows);

struct MatrixAxes {
  int rows = 0, columns = 0;
  const std::vector<std::string>* y_ticks =
      nullptr; // one per row; other numbers of ticks, and null, are not shown
  const std::vector<std::string>* x_ticks = nullptr;
  std::string y_label = {}, x_label = {}; // of the axes, drawn where the matrix is large enough
};

struct MatrixMarks {
  std::optional<int> row; // the query
  std::optional<int> hovered_row, hovered_column;
};

struct MatrixInput {
  std::optional<Cell> hovered, clicked;
  ImVec2 from, to; // the rectangle of the cells
};

// Draws into the rectangle `from`, `size`, with ticks beside the rows and below the columns where they fit:
// of the rows at least every third. `paint` draws the whole matrix into the rectangle it is given, clipped to
// the part in view. `zoom` is updated; null: the whole matrix is shown.
MatrixInput draw_matrix(const char* id, Graphics& graphics, const MatrixAxes& axes, ImVec2 from, ImVec2 size,
                        const MatrixMarks& marks, float opacity, MapZoom* zoom,
                        const std::function<void(ImDrawList*, ImVec2, ImVec2)>& paint);

// A heat map with axes.
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

// The name on the left, then a bar for each feature. A pixel that stands for several features shows the
// largest.
StripInput draw_strip(const char* id, Graphics& graphics, const FeatureStrip& strip, ImVec2 from, ImVec2 size,
                      std::optional<int> marked, const ImVec4& colour, float brightness);

// A cross over the cell or the map of a muted head.
void muted_cross(ImDrawList* list, ImVec2 from, ImVec2 to);

// The part of a context menu that mutes the head or layer on which the menu was opened.
class HeadMenu {
public:
  // Call one of them every frame, inside the window, with the head or layer under the pointer.
  void set_hovered(std::optional<HeadIndex> head);
  void set_hovered_layer(std::optional<int> layer);
  // The entries and a separator.
  void draw(Editor& editor) const;

private:
  void set(std::optional<int> layer, std::optional<int> head);
  std::optional<int> layer_, head_;
};

} // namespace hydrascope::app
