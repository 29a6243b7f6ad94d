// A matrix of weights that is too large for memory, as tiles at the resolution of the screen: a coarse one at
// once, finer ones after the view has stopped moving.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/jobs/requests.h"
#include "app/jobs/results.h"
#include "app/panels/map_views.h"
#include "engine/run/quantities/weight_tile.h"

namespace hydrascope::app {

class WeightsTiles {
public:
  // Identifies the matrix: everything that its numbers depend on.
  struct Source {
    std::string key; // request_key: input, model, schedule
    int layer = 0;
    KernelSpec kernel;
    bool teacher_forced = false;
    bool value_weighted = false;
    std::vector<int> heads; // empty: all
    HeadFusion fusion = HeadFusion::mean;
    std::int64_t tokens = 0;
    std::int64_t first_key =
        0;               // of cross-attention: the tokens before it are the rows, the others the columns
    bool causal = false; // keys after a query's own token have no weights

    std::int64_t rows() const { return first_key > 0 ? first_key : tokens; }
    std::int64_t columns() const { return tokens - first_key; }
    bool operator==(const Source&) const = default;
  };

  // Shows another matrix. The tiles of the last one stay until the first tile of the new one is there.
  void set_source(const Source& source);
  const Source& source() const { return source_; }
  // Sets the part in view, `pixels` a side. Call it every frame.
  void set_view(const MapZoom& zoom, float pixels, double now);
  // Adds the coarse tile at once, and finer tiles after the view has stopped moving.
  void add_keys(QuantityKeys& keys, double now) const;
  // Whether finer tiles will be requested once the view has stopped moving.
  bool will_refine(double now) const;
  void take(const SideResults& results, double now);

  bool empty() const { return shown().empty(); }
  bool is_signed() const { return signed_; }
  bool untrained() const { return untrained_; }
  double largest() const { return largest_; }       // largest magnitude in the matrix
  double percentile() const { return percentile_; } // 99th percentile of the coarse cells

  void set_scale(const Scale& scale);
  void paint(Graphics& graphics, ImDrawList* list, ImVec2 from, ImVec2 to, float opacity);

  struct Value {
    float weight = 0;
    std::int64_t cells = 1; // number of weights in this pixel, which shows the largest
  };
  std::optional<Value> value(int row, int column) const;

private:
  struct Tile {
    TileKey key;
    int level = 0;
    double used = 0;
    Array values;
    MapTexture map;
  };
  const std::vector<Tile>& shown() const { return tiles_.empty() ? old_ : tiles_; }
  int deepest_level() const;
  std::vector<TileKey> visible_tiles(int level) const;
  TileKey tile(int level, std::int64_t row, std::int64_t column) const;
  bool holds(const TileKey& key) const;

  Source source_;
  std::vector<Tile> tiles_, old_;
  MapZoom zoom_;
  float pixels_ = 1;
  double changed_at_ = 0; // when the view last changed
  Scale scale_;
  bool signed_ = false, untrained_ = false;
  double largest_ = 0, percentile_ = 0;
};

} // namespace hydrascope::app
