// One kernel's weights in the Weights panel: whole, or by tiles where there are too many tokens.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/jobs/results.h"
#include "app/panels/map_views.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/panels/weights/weights_tiles.h"
#include "app/views/weights_view.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

// Whose weights stand side by side: of every kernel that is compared, on the shown schedule's q and k; or A's
// own kernel and B's own.
struct ColumnSource {
  Side side = Side::a;
  KernelSpec kernel;
};

// Of the selected layer, from left to right.
std::vector<ColumnSource> column_sources(const Document& document);

class WeightsColumn {
public:
  KernelSpec kernel() const { return kernel_; }
  std::string kernel_text() const { return difference_ ? side_name(Shown::difference) : kernel_.text(); }
  bool empty() const { return view_.empty() && tiles_.empty(); }
  bool tiled() const { return tiled_; }
  const Scale& scale() const { return tiled_ ? scale_ : view_.panel().scale; }
  const std::string& error() const { return error_; } // why there is nothing to show
  std::string label() const; // "untrained", "derived, signed"; empty where there is nothing to warn of
  bool is_signed() const { return signed_; }

  void clear();
  // The whole matrix; softmax's of the same layer beside it for the divergence, null: none.
  void show(const Found<WeightsKey>& found, const WeightsResult* softmax, const WeightsOptions& options);
  // A less B, both as they are shown.
  void subtract(const WeightsColumn& a, const WeightsColumn& b);
  bool is_difference() const { return difference_; }
  // The tokens of the run behind a row or column.
  ShownToken token(int index) const;
  std::optional<int> index_of(std::optional<std::int64_t> token) const;
  WeightsTiles& tiles() { return tiles_; }
  const WeightsTiles& tiles() const { return tiles_; }
  // What tiles have come of the matrix that tiles() is aimed at.
  void show_tiles(const SideResults& results, const WeightsOptions& options, double now);
  void set_scale(const Scale& scale);

  // Its label and its measures in a line.
  void draw_caption(const Graphics& graphics, float width) const;
  MatrixInput draw(const char* id, Graphics& graphics, ImVec2 from, ImVec2 size, const MatrixMarks& marks,
                   float opacity, MapZoom& zoom);
  // "0.0123, rank 4 of 257, row sum 1" of a cell; a pooled pixel says of how many weights it is the largest.
  std::string facts(Cell cell) const;
  const HeatMapPanel* panel() const { return view_.empty() ? nullptr : &view_.panel(); }

private:
  KernelSpec kernel_;
  HeatMapView view_;
  WeightsTiles tiles_;
  Scale scale_; // of the tiles
  bool tiled_ = false, signed_ = false, untrained_ = false, difference_ = false;
  std::vector<ShownToken> tokens_; // of a whole matrix
  std::string error_, measures_, about_;
};

// Puts all maps of positive weights on one scale.
void share_scale(std::span<WeightsColumn> columns);

} // namespace hydrascope::app
