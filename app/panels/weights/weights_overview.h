// The weights of every head of every layer as thumbnails: a click opens one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/panels/panel.h"

namespace hydrascope::app {

class WeightsOverview {
public:
  static void add_keys(const Document& document, QuantityKeys& keys);
  // Keeps what it has until what replaces it is there.
  void prepare(const Snapshot& snapshot);
  // A − B, pixel by pixel. Nothing where a layer's numbers of heads differ.
  void subtract(const WeightsOverview& a, const WeightsOverview& b, const Snapshot& snapshot);
  // Returns the head under the pointer.
  std::optional<HeadIndex> draw(Editor& editor, Graphics& graphics, float brightness);
  bool empty() const { return thumbnails_.empty(); }
  Figure figure(const Document& document) const;
  // One scale for two of them, where each has one for all of its own.
  static void share_scale(WeightsOverview& a, WeightsOverview& b, const ViewOptions& view);

private:
  struct Thumbnail {
    Array values;
    Scale scale;
    MapTexture map;
  };
  struct Row {
    std::string kernel;
    bool derived_signed = false, untrained = false;
    std::size_t first = 0, count = 0; // of thumbnails_
  };
  // `least`: the shared scale goes as far as this at least.
  void set_scales(const ViewOptions& view, double least = 0);
  std::vector<Row> rows_; // by layer
  std::vector<Thumbnail> thumbnails_;
  double shared_high_ = 0;
  bool shared_ = false, difference_ = false, value_weighted_ = false;
};

} // namespace hydrascope::app
