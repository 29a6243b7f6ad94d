// Which part of a matrix is shown, the same part in every map beside it, and a matrix drawn by its axes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <imgui.h>

#include "app/ui/graphics.h"

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

} // namespace hydrascope::app
