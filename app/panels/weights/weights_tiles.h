// A matrix of weights too large to be held: tiles at the resolution of the screen, coarse ones at once, finer
// ones where the view stays.
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

// From here on a matrix is shown by tiles: 600² weights of 12 heads are 17 MB for every kernel.
inline constexpr std::int64_t most_tokens_whole = 600;

class WeightsTiles {
public:
  // Which matrix: everything that its numbers depend on.
  struct Source {
    std::string key; // request_key: input, model, schedule
    int layer = 0;
    KernelSpec kernel;
    bool teacher_forced = false;
    bool value_weighted = false;
    std::vector<int> heads; // empty: all
    HeadFusion fusion = HeadFusion::mean;
    std::int64_t tokens = 0;

    bool operator==(const Source&) const = default;
  };

  // What is shown of another matrix stays until the first tile of this one is there.
  void aim(const Source& source);
  const Source& source() const { return source_; }
  // What is to be seen, drawn on this many pixels a side. Call with every frame.
  void see(const MapZoom& zoom, float pixels, double now);
  // The whole at once; finer tiles once the view has stood still.
  void add_keys(QuantityKeys& keys, double now) const;
  // A finer tile is still to be asked for, as soon as the view has stood still.
  bool waits(double now) const;
  void take(const SideResults& results, double now);

  bool empty() const { return shown().empty(); }
  bool is_signed() const { return signed_; }
  bool untrained() const { return untrained_; }
  double largest() const { return largest_; }       // absolute, of the whole matrix
  double percentile() const { return percentile_; } // 99 of 100 of the coarse cells are below

  void set_scale(const Scale& scale);
  void paint(Graphics& graphics, ImDrawList* list, ImVec2 from, ImVec2 to, float opacity);

  struct Value {
    float weight = 0;
    std::int64_t cells = 1; // weights under this pixel, of which it is the largest; 1: this weight itself
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
  int deepest() const;
  std::vector<TileKey> wanted(int level) const;
  TileKey tile(int level, std::int64_t row, std::int64_t column) const;
  bool holds(const TileKey& key) const;

  Source source_;
  std::vector<Tile> tiles_, old_;
  MapZoom zoom_;
  float pixels_ = 1;
  double moved_ = 0; // when the view last changed
  Scale scale_;
  bool signed_ = false, untrained_ = false;
  double largest_ = 0, percentile_ = 0;
};

} // namespace hydrascope::app
