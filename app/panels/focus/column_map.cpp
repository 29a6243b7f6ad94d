#include "app/panels/focus/column_map.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {

namespace {

std::string untrained(const RunResult& run, int layer) {
  const auto index = static_cast<std::size_t>(layer);
  return index < run.layers.size() && run.layers[index].untrained ? "untrained" : "";
}

std::string joined(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + ", " + second;
}

TokenMap recoloured(TokenMap map, const ViewOptions& view) {
  if (view.cividis && map.scale.map == ColourMap::viridis) map.scale.map = ColourMap::cividis;
  return map;
}

} // namespace

void add_map_keys(const Document& document, QuantityKeys& keys) {
  const Scene& scene = document.scene();
  const ViewOptions& view = document.view;
  keys.add(FocusKey{scene.layer}); // with it comes which query the target reads
  if (view.maps.contains(MapKind::attention)) {
    if (scene.default_query) { // one of the two, which only the run knows
      keys.add(AttentionRowKey{.layer = scene.layer, .query = 0});
      keys.add(AttentionRowKey{.layer = scene.layer, .query = {}});
    } else {
      keys.add(AttentionRowKey{.layer = scene.layer, .query = scene.query});
    }
  }
  if (view.maps.contains(MapKind::rollout)) keys.add(rollout_key(scene.head, view.discard));
}

FocusOptions focus_options(const Document& document) {
  return {.normalise = Normalisation::max,
          .with_sign = document.view.with_sign,
          .opacity = document.view.opacity,
          .interpolation = document.view.interpolation,
          .photograph = false,
          .tokens = document.view.tokens,
          .map = document.view.cividis ? ColourMap::cividis : ColourMap::magma};
}

std::optional<ColumnMap> find_column_map(const SideResults& results, const Document& document, MapKind kind) {
  const Scene& scene = document.scene();
  const auto found = find(results, FocusKey{scene.layer});
  if (!found) return std::nullopt;
  const RunResult& run = *found.run;
  ColumnMap column{.run = &run, .map = {}, .raw = {}, .flags = {}};
  switch (kind) {
    case MapKind::focus:
      column.map = focus_map(run, *found.result, focus_options(document));
      column.raw = found.result->contributions.values;
      column.flags = untrained(run, scene.layer);
      return column;
    case MapKind::attention: {
      const auto* row = find(results, AttentionRowKey{.layer = scene.layer, .query = run.query}).result;
      if (row == nullptr) return std::nullopt;
      column.map = recoloured(attention_map(run, *row, scene.head, document.view.tokens), document.view);
      column.flags = joined(attention_flags(*row, run.layers[static_cast<std::size_t>(scene.layer)].kernel),
                            untrained(run, scene.layer));
      return column;
    }
    case MapKind::rollout: {
      const auto* rollout = find(results, rollout_key(scene.head, document.view.discard)).result;
      if (rollout == nullptr) return std::nullopt;
      column.map = recoloured(rollout_map(run, *rollout, run.query, document.view.tokens), document.view);
      column.flags = rollout_flags(*rollout);
      return column;
    }
  }
  return std::nullopt;
}

} // namespace hydrascope::app
