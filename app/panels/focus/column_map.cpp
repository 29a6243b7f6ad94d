#include "app/panels/focus/column_map.h"

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

void ask_for_maps(const Document& document, Asks& asks) {
  const Scene& scene = document.scene();
  const ViewOptions& view = document.view;
  add_focus(asks, scene.layer); // with it comes which query the target reads
  if (view.maps.contains(MapKind::attention)) {
    if (scene.default_query) { // one of the two, which only the run knows
      add_attention_row(asks, {.layer = scene.layer, .query = 0});
      add_attention_row(asks, {.layer = scene.layer, .query = {}});
    } else {
      add_attention_row(asks, {.layer = scene.layer, .query = scene.query});
    }
  }
  if (view.maps.contains(MapKind::rollout)) asks.rollout = rollout_ask(scene.head, view.discard);
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
  const FoundFocus found = find_focus(results, scene.layer);
  if (found.focus == nullptr) return std::nullopt;
  const RunResult& run = *found.run;
  ColumnMap column{.run = &run, .map = {}, .raw = {}, .flags = {}};
  switch (kind) {
    case MapKind::focus:
      column.map = focus_map(run, *found.focus, focus_options(document));
      column.raw = found.focus->contributions.values;
      column.flags = untrained(run, scene.layer);
      return column;
    case MapKind::attention: {
      const auto* row = find_attention_row(results, {.layer = scene.layer, .query = run.query});
      if (row == nullptr) return std::nullopt;
      column.map = recoloured(attention_map(run, *row, scene.head, document.view.tokens), document.view);
      column.flags = joined(attention_flags(*row, run.layers[static_cast<std::size_t>(scene.layer)].kernel),
                            untrained(run, scene.layer));
      return column;
    }
    case MapKind::rollout: {
      const auto* rollout = find_rollout(results, rollout_ask(scene.head, document.view.discard));
      if (rollout == nullptr) return std::nullopt;
      column.map = recoloured(rollout_map(run, *rollout, run.query, document.view.tokens), document.view);
      column.flags = rollout_flags(*rollout);
      return column;
    }
  }
  return std::nullopt;
}

} // namespace hydrascope::app
