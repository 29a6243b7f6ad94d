#include "app/views/scatter_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "app/views/selection.h"
#include "engine/base/error.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {
namespace {

constexpr std::int64_t score_cells = 120, weight_cells = 90;

struct Points {
  std::vector<float> scores, weights;
  std::vector<std::size_t> row_ends; // indices into both, ascending
};

Points points_of(const RunResult& run, const WeightsResult& weights, const VectorsResult& vectors, int head) {
  if (head < 0 || head >= weights.weights.extent(0) || head >= vectors.q.extent(0))
    throw UsageError(fmt::format("head {}", head), weights.kernel.label() + " has no such head",
                     "choose another");
  const auto width = static_cast<std::size_t>(vectors.q.extent(2));
  const auto tokens = static_cast<std::size_t>(vectors.k.extent(1));
  const float scale = 1.0F / std::sqrt(static_cast<float>(width));
  const auto q = vectors.q.slice(head), k = vectors.k.slice(head), w = weights.weights.slice(head);
  Points points;
  for (std::size_t index = 0; index < weights.rows.size(); ++index) {
    const auto row = static_cast<std::size_t>(weights.rows[index]);
    for (std::size_t token = 0; token < tokens; ++token) {
      if (!sees(run, weights.rows[index], static_cast<std::int64_t>(token))) continue;
      float score = 0;
      for (std::size_t f = 0; f < width; ++f) score += q[row * width + f] * k[token * width + f];
      points.scores.push_back(score * scale);
      points.weights.push_back(w[index * tokens + token]);
    }
    points.row_ends.push_back(points.scores.size());
  }
  return points;
}

// The ranks of the values, less the mean rank; ties share one rank.
void rank(std::span<const float> values, std::vector<std::size_t>& order, std::vector<double>& ranks) {
  order.resize(values.size());
  ranks.resize(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  const double middle = (static_cast<double>(values.size()) - 1) / 2;
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double shared = static_cast<double>(first + end - 1) / 2 - middle;
    for (; first < end; ++first) ranks[order[first]] = shared;
  }
}

double rank_correlation(const Points& points) {
  constexpr std::size_t least_keys = 3; // of a row that counts
  std::vector<std::size_t> order;
  std::vector<double> a, b;
  double sum = 0, rows = 0;
  for (std::size_t row = 0, first = 0; row < points.row_ends.size(); first = points.row_ends[row++]) {
    const std::size_t keys = points.row_ends[row] - first;
    if (keys < least_keys) continue;
    ++rows;
    rank(std::span(points.scores).subspan(first, keys), order, a);
    rank(std::span(points.weights).subspan(first, keys), order, b);
    const double both = std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.0) *
                                  std::inner_product(b.begin(), b.end(), b.begin(), 0.0));
    if (both > 0) sum += std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / both;
  }
  return rows > 0 ? sum / rows : std::numeric_limits<double>::quiet_NaN();
}

Scale scatter_scale(const ScatterView& view) {
  Scale scale;
  scale.map = ColourMap::viridis;
  scale.logarithmic = true;
  scale.label = "pairs of tokens";
  scale.low = 0.5; // so that a single pair has a colour that is seen
  scale.high = 1;
  for (const float count : view.counts.values) {
    if (!std::isnan(count)) scale.high = std::max(scale.high, static_cast<double>(count));
  }
  return scale;
}

} // namespace

ScatterView scatter_view(const RunResult& run, const WeightsResult& weights, const VectorsResult& vectors,
                         int head, bool logarithmic) {
  const Points points = points_of(run, weights, vectors, head);
  ScatterView view;
  view.pairs = static_cast<std::int64_t>(points.scores.size());
  view.counts.shape = {weight_cells, score_cells};
  view.counts.values.assign(static_cast<std::size_t>(weight_cells * score_cells), 0);
  view.correlation = rank_correlation(points);
  if (points.scores.empty()) return view;
  const auto [low_score, high_score] = std::ranges::minmax(points.scores);
  const auto [low_weight, high_weight] = std::ranges::minmax(points.weights);
  view.low_score = static_cast<double>(low_score);
  view.high_score = static_cast<double>(high_score);
  view.low_weight = static_cast<double>(low_weight);
  view.high_weight = static_cast<double>(high_weight);
  view.logarithmic = logarithmic && high_weight > 0 && low_weight >= 0;
  if (view.logarithmic) view.low_weight = std::max(view.low_weight, view.high_weight * 1e-8);
  const auto height = [&](double weight) {
    return view.logarithmic ? std::log(std::max(weight, view.low_weight)) : weight;
  };
  const auto cell = [](double value, double low, double high, std::int64_t cells) {
    const double share = high > low ? (value - low) / (high - low) : 0.5;
    return std::clamp(static_cast<std::int64_t>(share * static_cast<double>(cells)), std::int64_t{0},
                      cells - 1);
  };
  std::int64_t below = 0;
  for (std::size_t i = 0; i < points.scores.size(); ++i) {
    const auto score = static_cast<double>(points.scores[i]);
    below += score < -1 ? 1 : 0;
    const std::int64_t column = cell(score, view.low_score, view.high_score, score_cells);
    const std::int64_t row = weight_cells - 1 -
                             cell(height(static_cast<double>(points.weights[i])), height(view.low_weight),
                                  height(view.high_weight), weight_cells);
    view.counts.values[static_cast<std::size_t>(row * score_cells + column)] += 1;
  }
  view.share_below = static_cast<double>(below) / static_cast<double>(view.pairs);
  for (float& count : view.counts.values) {
    if (count == 0) count = std::numeric_limits<float>::quiet_NaN();
  }
  return view;
}

Figure scatter_figure(const RunResult& run, const WeightsResult& weights, const ScatterView& view, int head) {
  Figure figure;
  figure.title =
      fmt::format("{} · layer {}, head {} · {}", run.model.name, weights.layer, head, weights.kernel.label());
  figure.subtitle =
      fmt::format("{} pairs of tokens; {} of q·k/√d below −1", view.pairs, percent_text(view.share_below));
  HeatMapPanel panel;
  panel.values = view.counts;
  panel.scale = scatter_scale(view);
  panel.x_label = "q·k/√d";
  panel.y_label = "weight";
  panel.x_axis = Axis{view.low_score, view.high_score, false};
  panel.y_axis = Axis{view.low_weight, view.high_weight, view.logarithmic};
  panel.missing = MissingCells::blank;
  for (std::int64_t column = 0; column < score_cells; ++column) {
    const double share = (static_cast<double>(column) + 0.5) / static_cast<double>(score_cells);
    panel.x_ticks.push_back(number_text(view.low_score + share * (view.high_score - view.low_score), 3));
  }
  for (std::int64_t row = 0; row < weight_cells; ++row) {
    const double share = 1 - (static_cast<double>(row) + 0.5) / static_cast<double>(weight_cells);
    const double value = view.logarithmic
                             ? view.low_weight * std::pow(view.high_weight / view.low_weight, share)
                             : view.low_weight + share * (view.high_weight - view.low_weight);
    panel.y_ticks.push_back(number_text(value, 3));
  }
  figure.panels.emplace_back(std::move(panel));
  return figure;
}

} // namespace hydrascope::app
