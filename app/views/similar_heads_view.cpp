#include "app/views/similar_heads_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace hydrascope::app {

std::vector<NearHead> nearest_heads(const SimilarHeads& similar, std::size_t count) {
  std::vector<NearHead> heads;
  const std::int64_t per_layer = similar.distances.extent(1);
  for (std::size_t i = 0; i < similar.distances.values.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const HeadIndex head{static_cast<int>(index / per_layer), static_cast<int>(index % per_layer)};
    const float distance = similar.distances.values[i];
    if (head != similar.head && !std::isnan(distance)) heads.push_back({head, static_cast<double>(distance)});
  }
  std::ranges::stable_sort(heads, {}, &NearHead::distance);
  if (heads.size() > count) heads.resize(count);
  return heads;
}

std::string distance_quantity(HeadMetric metric) {
  return metric == HeadMetric::cosine ? "1 − cosine of the weights" : "Jensen–Shannon divergence (nats)";
}

HeatMapPanel similar_heads_panel(const RunResult& run, const SimilarHeads& similar) {
  HeatMapPanel panel;
  panel.title = fmt::format("{}\ndistance to layer {}, head {}", run.schedule.summary(), similar.head.layer,
                            similar.head.head);
  panel.values = similar.distances;
  double high = 0;
  for (const float value : panel.values.values)
    if (!std::isnan(value)) high = std::max(high, static_cast<double>(value));
  panel.scale.high = high > 0 ? high : 1;
  panel.scale.label = distance_quantity(similar.metric);
  panel.x_label = "head";
  panel.y_label = "layer";
  for (std::int64_t head = 0; head < panel.values.extent(1); ++head)
    panel.x_ticks.push_back(fmt::format("{}", head));
  for (std::int64_t layer = 0; layer < panel.values.extent(0); ++layer)
    panel.y_ticks.push_back(fmt::format("{}", layer));
  panel.marks = {similar.head.layer};
  if (std::ranges::any_of(panel.values.values, [](float value) { return std::isnan(value); }))
    panel.note = "hatched: kernels with another number of heads";
  return panel;
}

Figure similar_heads_figure(const RunResult& run, const SimilarHeads& similar) {
  Figure figure;
  figure.title =
      fmt::format("{} · heads like layer {}, head {}", run.model.name, similar.head.layer, similar.head.head);
  figure.subtitle = similar.metric == HeadMetric::cosine
                        ? "1 − cosine of the flattened weights: some of the schedule's are no distributions"
                        : "Jensen–Shannon divergence of the weights, nats, mean over query rows";
  figure.panels.emplace_back(similar_heads_panel(run, similar));
  BarsPanel bars;
  bars.title = "nearest";
  bars.x_label = distance_quantity(similar.metric);
  for (const NearHead& near : nearest_heads(similar, 10)) {
    bars.labels.push_back(fmt::format("layer {}, head {}", near.head.layer, near.head.head));
    bars.values.push_back(near.distance);
    bars.colours.push_back(
        kernel_colour(run.layers.at(static_cast<std::size_t>(near.head.layer)).kernel.name));
  }
  if (!bars.labels.empty()) figure.panels.emplace_back(std::move(bars));
  return figure;
}

} // namespace hydrascope::app
