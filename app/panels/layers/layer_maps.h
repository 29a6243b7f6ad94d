// The focus maps of all layers of A, of B, or A − B: what the Layers panel shows of one of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/panels/heat_map_view.h"
#include "app/panels/panel.h"
#include "app/views/focus_view.h"

namespace hydrascope::app {

class LayerMaps {
public:
  struct Map {
    MapTexture texture;
    std::string kernel;  // its name, for its colour; of A in a difference
    std::string name;    // "elu", "elu − softmax"
    std::string nothing; // why the map is empty; empty if it is not
    bool untrained = false;
  };

  // A map for which there is no newer one stays.
  void prepare(const Snapshot& snapshot);
  void subtract(const LayerMaps& a, const LayerMaps& b, const Snapshot& snapshot);
  void clear();

  bool empty() const { return maps_.empty(); }
  std::vector<Map>& maps() { return maps_; }                      // by layer
  HeatMapView& rows() { return rows_; }                           // a sentence's: one row a layer
  const std::vector<ShownToken>& shown() const { return shown_; } // … and its columns
  const Figure& figure() const { return figure_; }
  const Scale* scale() const; // of every layer's map; null where each has its own

private:
  // What a layer's map is made of, as the results have it now.
  struct Layer {
    std::shared_ptr<const RunResult> run, minus; // the second only of a difference
    TokenMap map;
    std::string kernel, name;
    bool untrained = false;
  };

  // `side`: what the figure calls it; empty where it stands alone.
  void show(const Document& document, const std::string& side);
  void gather_rows();

  std::vector<std::optional<Layer>> newest_; // by layer
  std::vector<Map> maps_;
  HeatMapView rows_;
  std::vector<ShownToken> shown_;
  Scale scale_; // the widest, which is that of all rows
  Figure figure_;
};

} // namespace hydrascope::app
