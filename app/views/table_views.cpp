#include "app/views/table_views.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "app/views/selection.h"
#include "engine/base/error.h"
#include "engine/figures/scale.h"
#include "engine/figures/token_text.h"
#include "engine/run/predicted_number.h"
#include "engine/run/quantities/head_quantity.h"

namespace hydrascope::app {

namespace {

std::vector<std::string> numbers(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t index = 0; index < count; ++index) names.push_back(std::to_string(index));
  return names;
}

// Layers × heads: the values, or one part of a quantity that has several.
Array table_values(const HeadTable& table, std::size_t part) {
  if (table.values.shape.size() != 3) return table.values;
  Array values;
  values.shape = {table.values.extent(0), table.values.extent(1)};
  const auto width = static_cast<std::size_t>(table.values.extent(2));
  for (std::size_t index = part; index < table.values.values.size(); index += width)
    values.values.push_back(table.values.values[index]);
  return values;
}

// Of a run with `whole`.
std::string effect_text(const RunResult& run) {
  std::string count;
  if (!run.hidden_tokens.empty())
    count = fmt::format("{} {}", run.hidden_tokens.size(), run.rows > 0 ? "hidden" : "masked");
  if (!run.muted_heads.empty())
    count += fmt::format("{}{} head{} muted", count.empty() ? "" : ", ", run.muted_heads.size(),
                         run.muted_heads.size() == 1 ? "" : "s");
  if (run.predictions.empty() || run.whole->predictions.empty())
    return fmt::format("{}: cosine {} to the embedding without that", count,
                       number_text(run.whole->similarity));
  const Prediction& before = run.whole->predictions.front();
  const Prediction& now = run.predictions.front();
  if (before.index != now.index)
    return fmt::format("{}: {} {} became {} {}", count, prediction_name(run, before),
                       prediction_value(run, before), prediction_name(run, now), prediction_value(run, now));
  return fmt::format("{}: {} {} → {}", count, prediction_name(run, now), prediction_value(run, before),
                     prediction_value(run, now));
}

double largest(const Array& values) {
  double high = 0;
  for (const float value : values.values) {
    if (std::isfinite(value)) high = std::max(high, static_cast<double>(value));
  }
  return high;
}

} // namespace

std::string difference_in_points(double a, double b) {
  const double points = std::round((a - b) * 1000) / 10;
  return points == 0 ? "0.0" : fmt::format("{}{:.1f}", points < 0 ? "−" : "+", std::abs(points));
}

std::string prediction_name(const RunResult& run, const Prediction& prediction) {
  return run.model.causal ? listed_token(prediction.label) : prediction.label;
}

std::string prediction_value(const RunResult& run, const Prediction& prediction) {
  return predicts_number(run.model) ? number_text(prediction.logit) : percent_text(prediction.probability);
}

std::vector<std::string> effect_lines(const RunResult* a, const RunResult* b, const bool with_b) {
  std::vector<std::string> lines;
  for (const auto& [side, run] : {std::pair(Side::a, a), std::pair(Side::b, b)}) {
    if (run == nullptr || !run->whole) continue;
    lines.push_back(with_b ? fmt::format("{}, {}", side_name(side), effect_text(*run)) : effect_text(*run));
  }
  return lines;
}

Figure predictions_figure(std::span<const RunResult* const> runs, int count) {
  Figure figure;
  for (const RunResult* const run : runs) {
    if (run == nullptr || run->predictions.empty()) continue;
    const bool decoder = run->model.causal;
    if (figure.title.empty())
      figure.title = run->model.name + (decoder ? " · next tokens" : " · predictions");
    BarsPanel panel;
    panel.title = run->schedule.summary();
    if (decoder && run->query)
      panel.title += fmt::format("\nafter “{}”", token_text(*run, static_cast<std::size_t>(*run->query)));
    const bool number = predicts_number(run->model);
    panel.x_label = number                          ? run->predictions.front().label
                    : run->model.independent_labels ? "probability of each label"
                                                    : "probability";
    const auto most = std::min(run->predictions.size(), static_cast<std::size_t>(std::max(count, 1)));
    for (std::size_t index = 0; index < most; ++index) {
      panel.labels.push_back(prediction_name(*run, run->predictions[index]));
      panel.values.push_back(number ? run->predictions[index].logit : run->predictions[index].probability);
    }
    figure.panels.emplace_back(std::move(panel));
  }
  return figure;
}

HeatMapPanel head_table_panel(const RunResult& run, const HeadTable& table, ChangeMeasure measure) {
  const HeadQuantityInfo& quantity = head_quantity_info(table.key.quantity);
  const std::size_t chosen = std::min(static_cast<std::size_t>(measure), quantity.parts.size() - 1);
  const HeadQuantityInfo::Part& part = quantity.parts[chosen];
  HeatMapPanel panel;
  panel.title = table.key.kernel ? table.kernel.label() + "\nsoftmax inputs (teacher-forced)"
                                 : run.schedule.summary() + "\nthis run";
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
    if (undefined)
      panel.note =
          "hatched: " + (quantity.undefined.empty() ? "undefined for the kernel" : quantity.undefined);
  }
  return panel;
}

HeatMapPanel head_table_difference(const HeatMapPanel& a, const HeatMapPanel& b) {
  if (a.values.shape != b.values.shape)
    throw UsageError(side_name(Shown::difference), "A's kernels and B's have different numbers of heads",
                     "compare schedules whose kernels have equally many");
  return heat_map_difference(a, b);
}

HeatMapPanel heat_map_difference(const HeatMapPanel& a, const HeatMapPanel& b) {
  HeatMapPanel panel = a;
  panel.title = side_name(Shown::difference);
  for (std::size_t i = 0; i < panel.values.values.size(); ++i) panel.values.values[i] -= b.values.values[i];
  double high = 0;
  for (const float value : panel.values.values) {
    if (std::isfinite(value)) high = std::max(high, std::abs(static_cast<double>(value)));
  }
  // Rounding alone must not look like a difference.
  constexpr double least = 1e-3; // of the largest value
  panel.scale.map = ColourMap::blue_white_red;
  panel.scale.high = high > 0 ? std::max(high, least * std::max(a.scale.high, b.scale.high)) : 1;
  panel.scale.low = -panel.scale.high;
  panel.scale.label = difference_label(a.scale.label);
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

HeatMapPanel hidden_norms_panel(const RunResult& run, const Array& norms) {
  HeatMapPanel panel;
  panel.title = run.schedule.summary();
  panel.values = norms;
  const auto largest = std::ranges::max_element(norms.values);
  panel.scale.high = largest == norms.values.end() ? 1 : static_cast<double>(*largest);
  panel.scale.label = "L2 norm";
  panel.x_label = "token";
  panel.y_label = "before layer";
  if (run.rows == 0)
    for (std::size_t token = 0; token < run.tokens.size(); ++token)
      panel.x_ticks.push_back(token_text(run, token));
  const std::int64_t states = norms.extent(0);
  for (std::int64_t state = 0; state + 1 < states; ++state) panel.y_ticks.push_back(fmt::format("{}", state));
  panel.y_ticks.emplace_back("last");
  const auto last = norms.slice(states - 1);
  std::vector<float> sorted(last.begin(), last.end());
  std::ranges::sort(sorted);
  const auto most = static_cast<std::size_t>(std::ranges::max_element(last) - last.begin());
  panel.note = fmt::format("after the last layer: median {}, largest {} ({})",
                           number_text(static_cast<double>(sorted[sorted.size() / 2])),
                           number_text(static_cast<double>(sorted.back())), token_text(run, most));
  return panel;
}

HeatMapPanel hidden_norms_difference(const HeatMapPanel& a, const HeatMapPanel& b) {
  if (a.values.shape != b.values.shape)
    throw UsageError(side_name(Shown::difference), "A's tokens and B's differ in number",
                     "compare runs of the same input");
  HeatMapPanel panel = heat_map_difference(a, b);
  panel.note.clear();
  return panel;
}

Figure hidden_norms_figure(const RunResult& run, const Array& norms) {
  Figure figure;
  figure.title = run.model.name + " · norms of the hidden states";
  figure.subtitle =
      "‖x‖₂ of what enters each layer; a token with many times the others' norm is an outlier "
      "(Darcet et al. 2024)";
  figure.panels.emplace_back(hidden_norms_panel(run, norms));
  return figure;
}

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
