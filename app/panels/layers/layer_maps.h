// The focus maps of all layers of A, of B, or A − B: what the Layers panel shows of one of them.
#pragma once

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

  // `which`: a, b or difference. A map for which there is no newer one stays.
  void prepare(const Snapshot& snapshot, Shown which);
  void clear();

  const char* title() const; // "A", "B", "A − B"
  bool empty() const { return maps_.empty(); }
  std::vector<Map>& maps() { return maps_; }                      // by layer
  HeatMapView& rows() { return rows_; }                           // a sentence's: one row a layer
  const std::vector<ShownToken>& shown() const { return shown_; } // … and its columns
  const Figure& figure() const { return figure_; }
  const Scale* scale() const; // of every layer's map; null where each has its own

private:
  void gather_rows();

  Shown which_ = Shown::a;
  std::vector<Map> maps_;
  HeatMapView rows_;
  std::vector<ShownToken> shown_;
  Scale scale_; // the widest, which is that of all rows
  Figure figure_;
};

} // namespace hydrascope::app
