// The focus maps of all layers, ready to draw as small multiples.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/panels/map_views.h"
#include "app/panels/panel.h"
#include "app/views/focus_view.h"

namespace hydrascope::app {

// The focus maps of all layers for A, B or A − B.
class LayerMaps {
public:
  struct Map {
    MapTexture texture;
    std::string kernel;       // for the colour; A's in a difference
    std::string name;         // "elu", "elu − softmax"
    std::string empty_reason; // why the map is empty; otherwise empty
    bool untrained = false;
    bool same = false; // a difference of equal maps
  };

  // Keeps the maps for which there is no newer one, as long as there are results.
  void prepare(const Snapshot& snapshot);
  void subtract(const LayerMaps& a, const LayerMaps& b, const Snapshot& snapshot);
  void clear();

  bool empty() const { return maps_.empty(); }
  std::vector<Map>& maps() { return maps_; }                      // by layer
  HeatMapView& rows() { return rows_; }                           // for sentences: layers × tokens
  const std::vector<ShownToken>& shown() const { return shown_; } // the columns of rows()
  const Figure& figure() const { return figure_; }
  const Scale* scale() const; // of all maps; null if each has its own
  // A difference of which every map is one of equal maps.
  bool same() const { return !maps_.empty() && std::ranges::all_of(maps_, &Map::same); }

private:
  // The newest results of one layer.
  struct Layer {
    std::shared_ptr<const RunResult> run, minus; // `minus` only in a difference
    TokenMap map;
    std::string kernel, name;
    bool untrained = false;
  };

  // `side`: its name in the figure; empty if it is shown alone.
  void show(const Document& document, const std::string& side);
  void gather_rows();

  std::vector<std::optional<Layer>> newest_; // by layer
  std::vector<Map> maps_;
  HeatMapView rows_;
  std::vector<ShownToken> shown_;
  Scale scale_;                // the widest, for rows_
  bool has_one_scale_ = false; // all maps have the same colours for the same numbers
  Figure figure_;
};

} // namespace hydrascope::app
