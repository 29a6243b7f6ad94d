#include "app/panels/layers/layer_maps.h"

#include <utility>

#include <fmt/format.h>

#include "app/panels/choices.h"
#include "app/panels/focus/focus_column.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {

namespace {

FocusOptions layer_options(const Document& document) {
  FocusOptions options = focus_options(document);
  if (document.kind == InputKind::text) options.look.interpolation = Interpolation::nearest;
  return options;
}

} // namespace

const Scale* LayerMaps::scale() const { return has_one_scale_ ? &scale_ : nullptr; }

void LayerMaps::clear() {
  newest_.clear();
  maps_.clear();
  rows_.clear();
  shown_.clear();
  scale_ = {};
  has_one_scale_ = false;
  figure_ = {};
}

void LayerMaps::prepare(const Snapshot& snapshot) {
  if (snapshot.shown().any() == nullptr) return clear();
  const Document& document = *snapshot.document;
  newest_.assign(static_cast<std::size_t>(document.scene().model->layers), std::nullopt);
  for (std::size_t layer = 0; layer < newest_.size(); ++layer) {
    const auto found = find(snapshot.shown(), FocusKey{static_cast<int>(layer)});
    if (!found) continue;
    const LayerRun& ran = found.run->layers.at(layer);
    newest_[layer] = {.run = found.run,
                      .minus = nullptr,
                      .map = focus_map(*found.run, *found.result, layer_options(document)),
                      .kernel = ran.kernel.name,
                      .name = ran.kernel.label(),
                      .untrained = ran.untrained};
  }
  show(document, snapshot.one_of_two ? side_name(document.view.shown) : "");
}

void LayerMaps::subtract(const LayerMaps& a, const LayerMaps& b, const Snapshot& snapshot) {
  if (a.empty() || b.empty()) return clear();
  newest_ = a.newest_;
  for (std::size_t layer = 0; layer < newest_.size(); ++layer) {
    std::optional<Layer>& own = newest_[layer];
    const std::optional<Layer>& other = b.newest_[layer];
    if (!other) own.reset();
    if (!own) continue;
    own->minus = other->run;
    own->map = map_difference(std::move(own->map), other->map);
    own->name += " − " + other->name;
    own->untrained |= other->untrained;
  }
  const bool alone = snapshot.document->view.shown == Shown::difference;
  show(*snapshot.document, alone ? "" : side_name(Shown::difference));
}

void LayerMaps::show(const Document& document, const std::string& side) {
  const FocusOptions options = layer_options(document);
  std::vector<FocusItem> items;
  Scale scale;
  for (std::size_t layer = 0; layer < newest_.size(); ++layer) {
    if (!newest_[layer]) continue;
    const Layer& newest = *newest_[layer];
    maps_.resize(newest_.size());
    Map& shown = maps_[layer];
    shown.kernel = newest.kernel;
    shown.name = newest.name;
    shown.untrained = newest.untrained;
    shown.empty_reason = newest.map.empty ? newest.map.note : "";
    shown.same = newest.map.same;
    shown.texture.set(newest.map.values, newest.map.scale, {.interpolation = options.look.interpolation});
    if (items.empty() || newest.map.scale.high > scale.high) scale = newest.map.scale;
    shown_ = newest.map.shown;
    items.push_back({.run = newest.run.get(),
                     .layer = static_cast<int>(layer),
                     .title = side.empty() ? "" : fmt::format("{}, layer {}\n{}", side, layer, newest.name),
                     .minus = newest.minus.get()});
  }
  if (items.empty()) return;
  scale_ = std::move(scale);
  has_one_scale_ = scale_.shared;
  // Each map is divided by its own largest value: 1 is not the same contribution in two layers.
  if (scale_.label.ends_with("1 = largest")) {
    scale_.label += " of the layer";
    scale_.shared = false;
  }
  const bool image = document.kind == InputKind::image;
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
      panel.values.values.push_back(maps_[layer].same ? 0 : maps_[layer].texture.value(0, token));
    panel.y_ticks.push_back(fmt::format("{}", layer));
  }
  for (const ShownToken& token : shown_) panel.x_ticks.push_back(plain_piece(token.text));
  if (tokens > 0) rows_.set(std::move(panel));
}

} // namespace hydrascope::app
