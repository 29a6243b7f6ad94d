#include "app/views/table_views.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/run/quantities/head_quantity.h"

namespace hydrascope::app {
namespace {

std::vector<std::string> numbers(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t index = 0; index < count; ++index) names.push_back(std::to_string(index));
  return names;
}

// Layers × heads; of several parts the one asked for.
Array table_values(const HeadTable& table, std::size_t part) {
  if (table.values.shape.size() != 3) return table.values;
  Array values;
  values.shape = {table.values.extent(0), table.values.extent(1)};
  const auto width = static_cast<std::size_t>(table.values.extent(2));
  for (std::size_t index = part; index < table.values.values.size(); index += width)
    values.values.push_back(table.values.values[index]);
  return values;
}

double largest(const Array& values) {
  double high = 0;
  for (const float value : values.values) {
    if (std::isfinite(value)) high = std::max(high, static_cast<double>(value));
  }
  return high;
}

} // namespace

Figure predictions_figure(std::span<const RunResult* const> runs, int count) {
  Figure figure;
  for (const RunResult* const run : runs) {
    if (run == nullptr || run->predictions.empty()) continue;
    if (figure.title.empty()) figure.title = run->model.name + " · predictions";
    BarsPanel panel;
    panel.title = run->schedule.summary();
    panel.x_label = "probability";
    const auto most = std::min(run->predictions.size(), static_cast<std::size_t>(std::max(count, 1)));
    for (std::size_t index = 0; index < most; ++index) {
      panel.labels.push_back(run->predictions[index].label);
      panel.values.push_back(run->predictions[index].probability);
    }
    figure.panels.emplace_back(std::move(panel));
  }
  return figure;
}

Figure timing_figure(const RunResult& run) {
  Figure figure;
  figure.title = run.model.name + " · time of each layer";
  figure.subtitle = fmt::format("{}; {} {}, {} threads; whole run {:.1f} ms", run.schedule.summary(),
                                run.device, run.dtype, run.threads, run.seconds * 1000);
  BarsPanel panel;
  panel.x_label = "time (ms)";
  std::vector<std::string> cached;
  for (std::size_t layer = 0; layer < run.layers.size(); ++layer) {
    if (run.layers[layer].cached) {
      cached.push_back(std::to_string(layer));
      continue;
    }
    panel.labels.push_back(fmt::format("{}  {}", layer, run.layers[layer].kernel.text()));
    panel.values.push_back(run.layers[layer].seconds * 1000);
    panel.colours.push_back(kernel_colour(run.layers[layer].kernel.name));
  }
  if (!cached.empty())
    figure.subtitle += fmt::format("; kept from an earlier run: layers {}", fmt::join(cached, ", "));
  figure.panels.emplace_back(std::move(panel));
  return figure;
}

HeatMapPanel head_table_panel(const RunResult& run, const HeadTable& table, ChangeMeasure measure) {
  const HeadQuantityInfo& quantity = head_quantity_info(table.key.quantity);
  const std::size_t chosen = std::min(static_cast<std::size_t>(measure), quantity.parts.size() - 1);
  const HeadQuantityInfo::Part& part = quantity.parts[chosen];
  HeatMapPanel panel;
  panel.title =
      table.key.kernel ? table.kernel.text() + "\nteacher-forced" : run.schedule.summary() + "\nin place";
  if (table.untrained) panel.title += ", untrained";
  panel.values = table_values(table, chosen);
  const double high = largest(panel.values);
  panel.scale.high = high > 0 ? high : 1;
  panel.scale.label = part.label;
  if (part.colours == HeadQuantityInfo::Colours::outputs) panel.scale.map = ColourMap::cividis;
  if (part.colours == HeadQuantityInfo::Colours::signed_unit) {
    panel.scale.map = ColourMap::blue_white_red;
    panel.scale.low = -1;
    panel.scale.high = 1;
  }
  panel.x_label = quantity.of_layers ? "mean over heads" : "head";
  panel.y_label = "layer";
  if (!panel.values.empty()) {
    panel.x_ticks = quantity.of_layers ? std::vector<std::string>{""} : numbers(panel.values.extent(1));
    panel.y_ticks = numbers(panel.values.extent(0));
    const bool undefined = std::any_of(panel.values.values.begin(), panel.values.values.end(),
                                       [](float value) { return std::isnan(value); });
    if (undefined) panel.note = "hatched: undefined for kernels with signed weights";
  }
  return panel;
}

HeatMapPanel head_table_difference(const HeatMapPanel& a, const HeatMapPanel& b) {
  if (a.values.shape != b.values.shape)
    throw UsageError("A − B", "A's kernels and B's have different numbers of heads",
                     "compare schedules whose kernels have equally many");
  return heat_map_difference(a, b);
}

HeatMapPanel heat_map_difference(const HeatMapPanel& a, const HeatMapPanel& b) {
  HeatMapPanel panel = a;
  panel.title = "A − B";
  for (std::size_t i = 0; i < panel.values.values.size(); ++i) panel.values.values[i] -= b.values.values[i];
  double high = 0;
  for (const float value : panel.values.values) {
    if (std::isfinite(value)) high = std::max(high, std::abs(static_cast<double>(value)));
  }
  panel.scale.map = ColourMap::blue_white_red;
  panel.scale.high = high > 0 ? high : 1;
  panel.scale.low = -panel.scale.high;
  panel.scale.label = a.scale.label + ", A − B";
  return panel;
}

Figure head_table_figure(const RunResult& run, const std::string& name) {
  Figure figure;
  figure.title = run.model.name + " · " + head_quantity_info(name).parts.back().label;
  std::vector<HeatMapPanel> panels;
  double high = 0;
  for (const auto& entry : run.quantities.all<HeadTableKey>()) {
    const HeadTable& table = *entry.result;
    if (table.key.quantity != name || table.values.empty()) continue;
    panels.push_back(head_table_panel(run, table));
    high = std::max(high, largest(panels.back().values));
  }
  for (auto& panel : panels) {
    panel.scale.high = high > 0 ? high : 1;
    panel.scale.shared = true;
    figure.panels.emplace_back(std::move(panel));
  }
  figure.columns = figure.panels.size() > 4 ? 3 : 0;
  return figure;
}

} // namespace hydrascope::app
