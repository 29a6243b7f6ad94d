#include "app/panels/weights/column_sources.h"

#include "app/panels/side_columns.h"

namespace hydrascope::app {

std::vector<ColumnSource> column_sources(const Document& document) {
  const Scene& scene = document.scene();
  std::vector<ColumnSource> sources;
  if (shows_both(document.view)) {
    const auto layer = static_cast<std::size_t>(scene.layer);
    for (const Side side : {Side::a, Side::b})
      sources.push_back({side, scene.schedules[static_cast<std::size_t>(side)].layers.at(layer)});
    return sources;
  }
  for (int i = 0; i < static_cast<int>(scene.comparison.size()); ++i)
    sources.push_back({edited_side(document.view), compared_kernel(document, i)});
  return sources;
}

} // namespace hydrascope::app
