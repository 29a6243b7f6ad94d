#include "app/panels/layers/layer_maps.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "app/panels/focus/column_map.h"
#include "app/panels/token_names.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {

namespace {

// The same layer of both sides; the second only where it is subtracted.
struct LayerFocus {
  Found<FocusKey> own, other;
};

LayerFocus find_layer(const Snapshot& snapshot, Shown which, int layer) {
  LayerFocus found{.own = find(*snapshot.results[which == Shown::b ? 1 : 0], FocusKey{layer}), .other = {}};
  if (which == Shown::difference) found.other = find(*snapshot.results[1], FocusKey{layer});
  if (which == Shown::difference && !found.other) found.own = {};
  return found;
}

} // namespace

const Scale* LayerMaps::scale() const { return scale_.shared ? &scale_ : nullptr; }

const char* LayerMaps::title() const {
  return which_ == Shown::a ? "A" : (which_ == Shown::b ? "B" : "A − B");
}

void LayerMaps::clear() {
  maps_.clear();
  rows_.clear();
  scale_ = {};
  figure_ = {};
}

void LayerMaps::prepare(const Snapshot& snapshot, Shown which) {
  const Document& document = *snapshot.document;
  if (which != which_) clear();
  which_ = which;
  const bool image = document.kind == InputKind::image;
  FocusOptions options = focus_options(document);
  if (!image) options.interpolation = Interpolation::nearest;
  std::vector<FocusItem> items;
  const auto layers = static_cast<std::size_t>(document.scene().model->layers);
  Scale scale;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto [own, other] = find_layer(snapshot, which, static_cast<int>(layer));
    if (!own) continue;
    maps_.resize(layers);
    Map& shown = maps_[layer];
    TokenMap map = focus_map(*own.run, *own.result, options);
    const LayerRun& ran = own.run->layers.at(layer);
    shown.kernel = ran.kernel.name;
    shown.name = ran.kernel.text();
    shown.untrained = ran.untrained;
    FocusItem item{.run = own.run.get(), .layer = static_cast<int>(layer), .minus = other.run.get()};
    if (other.result != nullptr) {
      map = map_difference(std::move(map), focus_map(*other.run, *other.result, options));
      shown.name += " − " + other.run->layers.at(layer).kernel.text();
      shown.untrained |= other.run->layers.at(layer).untrained;
    }
    if (document.view.shown == Shown::all)
      item.title = fmt::format("{}, layer {}\n{}", title(), layer, shown.name);
    shown.nothing = map.empty ? map.note : "";
    shown.texture.set(map.values, map.scale, options.interpolation);
    if (items.empty() || map.scale.high > scale.high) scale = map.scale;
    shown_ = std::move(map.shown);
    items.push_back(std::move(item));
  }
  if (items.empty()) return;
  scale_ = std::move(scale);
  if (!image) gather_rows();
  const auto* input = document.scene().input ? std::get_if<ImageInput>(&*document.scene().input) : nullptr;
  figure_ = focus_figure(items, input, options);
  if (image) figure_.columns = 6;
}

void LayerMaps::gather_rows() {
  HeatMapPanel panel;
  panel.scale = scale_;
  const auto tokens = static_cast<std::int64_t>(shown_.size());
  panel.values.shape = {static_cast<std::int64_t>(maps_.size()), tokens};
  for (std::size_t layer = 0; layer < maps_.size(); ++layer) {
    for (int token = 0; token < static_cast<int>(tokens); ++token)
      panel.values.values.push_back(maps_[layer].texture.value(0, token));
    panel.y_ticks.push_back(fmt::format("{}", layer));
  }
  for (const ShownToken& token : shown_) panel.x_ticks.push_back(plain_piece(token.text));
  if (tokens > 0) rows_.set(std::move(panel));
}

} // namespace hydrascope::app
