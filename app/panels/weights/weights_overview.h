// The weights of all heads of all layers as thumbnails. A click opens one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/panels/panel.h"

namespace hydrascope::app {

class WeightsOverview {
public:
  static void add_keys(const Document& document, QuantityKeys& keys);
  // Keeps the last thumbnails until all new ones are there.
  void prepare(const Snapshot& snapshot);
  // A − B, pixel by pixel; empty if the numbers of heads of a layer differ.
  void subtract(const WeightsOverview& a, const WeightsOverview& b, const Snapshot& snapshot);
  // Returns the head under the pointer.
  std::optional<HeadIndex> draw(Editor& editor, Graphics& graphics, float brightness);
  bool empty() const { return thumbnails_.empty(); }
  const char* empty_reason() const;
  Figure figure(const Document& document) const;
  // Gives both one scale, if each has one for all its thumbnails.
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
  struct Places;
  void draw_numbers(const Scene& scene, const Places& places) const;
  bool draw_thumbnail(Editor& editor, Graphics& graphics, std::size_t layer, std::size_t head, ImVec2 at,
                      float step, float brightness);
  std::vector<const Scale*> shown_scales(const Scene& scene) const; // one or two
  // `least`: lower bound of the shared scale's end.
  void set_scales(const ViewOptions& view, double least = 0);
  std::vector<Row> rows_; // by layer
  std::vector<Thumbnail> thumbnails_;
  std::string side_; // its name in the figure; empty if it is shown alone
  double shared_high_ = 0;
  bool shared_ = false, difference_ = false, value_weighted_ = false;
  bool causal_ = false;
  bool same_ = false; // a difference of equal weights, which is empty
};

} // namespace hydrascope::app
