// The weights of one kernel in the Weights panel: the whole matrix, or tiles if there are many tokens.
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

// One of the matrices side by side: of each compared kernel on the q and k of the shown schedule, or of A's
// and B's own kernels.
struct ColumnSource {
  Side side = Side::a;
  KernelSpec kernel;
};

// From left to right, for the selected layer.
std::vector<ColumnSource> column_sources(const Document& document);

class WeightsColumn {
public:
  KernelSpec kernel() const { return kernel_; }
  std::string kernel_text() const { return difference_ ? side_name(Shown::difference) : kernel_.label(); }
  // Of a difference "softmax − elu".
  std::string kernels() const;
  bool empty() const { return view_.empty() && tiles_.empty(); }
  bool tiled() const { return tiled_; }
  const Scale& scale() const { return tiled_ ? scale_ : view_.panel().scale; }
  const std::string& error() const { return error_; } // why it is empty
  std::string label() const;                          // "untrained", "implied weights, signed"; may be empty
  bool is_signed() const { return signed_; }

  void clear();
  // Shows the whole matrix. `softmax`, for the divergence, is of the same layer; may be null.
  void show(const Found<WeightsKey>& found, const WeightsResult* softmax, const WeightsOptions& shown);
  // Says in place of a matrix of the kernel why there is none.
  void show_none(const KernelSpec& kernel, std::string why);
  // Says in place of the tiles that the kernel, which has this many heads, has none of the chosen ones.
  void show_no_tiles(const KernelSpec& kernel, int heads, const HeadChoice& head);
  // Shows a − b.
  void subtract(const WeightsColumn& a, const WeightsColumn& b);
  bool is_difference() const { return difference_; }
  ShownToken row_token(int row) const { return token(row); }
  ShownToken column_token(int column) const { return token(static_cast<int>(first_key_) + column); }
  std::optional<int> row_of(std::optional<std::int64_t> token) const;
  WeightsTiles& tiles() { return tiles_; }
  const WeightsTiles& tiles() const { return tiles_; }
  // Shows the tiles of the matrix that tiles() shows.
  void show_tiles(const SideResults& results, const WeightsOptions& options, double now);
  void set_scale(const Scale& scale);

  // A line with label and measures.
  void draw_caption(const Graphics& graphics, float width) const;
  MatrixInput draw(const char* id, Graphics& graphics, ImVec2 from, ImVec2 size, const MatrixMarks& marks,
                   float opacity, MapZoom& zoom);
  // "weight 0.0123, rank 4 of 257, row sum 1" of a cell; for a pooled pixel, the number of its weights.
  std::string cell_text(Cell cell) const;
  const HeatMapPanel* panel() const { return view_.empty() ? nullptr : &view_.panel(); }

private:
  ShownToken token(int index) const;

  KernelSpec kernel_, other_; // other_: B's in a difference
  HeatMapView view_;
  WeightsTiles tiles_;
  Scale scale_; // of the tiles
  bool tiled_ = false, signed_ = false, untrained_ = false, difference_ = false;
  bool causal_ = false, value_weighted_ = false;
  std::int64_t first_key_ = 0;     // of cross-attention, whose queries are the tokens before it
  std::vector<ShownToken> tokens_; // of a whole matrix
  std::string error_, measures_tooltip_;
  std::vector<std::string> measures_;
};

// Gives all maps of positive weights one scale.
void share_scale(std::span<WeightsColumn> columns);

} // namespace hydrascope::app
