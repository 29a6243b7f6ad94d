// The weights of every head of every layer as thumbnails: a click opens one.
#pragma once

#include <string>
#include <vector>

#include "app/panels/panel.h"

namespace hydrascope::app {

class WeightsOverview {
public:
  void ask(const Document& document, Asks& asks) const;
  // Keeps what it has until what replaces it is there.
  void prepare(const SideResults& results, const Document& document);
  void draw(Editor& editor, Graphics& graphics, float brightness);
  bool empty() const { return thumbnails_.empty(); }
  Figure figure(const Document& document) const;

private:
  struct Thumbnail {
    Array values;
    Scale scale;
    MapTexture map;
  };
  struct Row {
    std::string kernel;
    bool derived_signed = false, untrained = false;
    int first = 0, count = 0; // of thumbnails_
  };
  std::vector<Row> rows_; // by layer
  std::vector<Thumbnail> thumbnails_;
  bool shared_ = false;
};

} // namespace hydrascope::app
