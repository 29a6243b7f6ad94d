#include "app/views/weights_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/views/table_views.h"
#include "engine/attention/interface/kernel_info.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr double probability_floor = 1e-12; // Hedgehog tables: inside the logarithm
constexpr double logarithmic_share = 1e-4;  // of the largest weight, where a logarithmic scale starts
constexpr const char* logarithmic_share_text = "10⁻⁴";

int head_count(const WeightsResult& weights) {
  return weights.weights.empty() ? 0 : static_cast<int>(weights.weights.extent(0));
}

std::vector<std::int64_t> heads_of(const WeightsResult& weights, const HeadChoice& head) {
  const std::vector<int> heads = shown_heads(head, head_count(weights));
  return {heads.begin(), heads.end()};
}

bool has_head(const WeightsResult& weights, const HeadChoice& head) {
  return !heads_of(weights, head).empty();
}

// How many rows of a head hold a weight: those of padding and of cross-attention's keys are 0.
double rows_that_ask(const WeightsResult& weights, std::int64_t head) {
  const auto values = weights.weights.slice(head);
  const auto keys = static_cast<std::size_t>(weights.weights.extent(2));
  double rows = 0;
  for (std::size_t first = 0; first + keys <= values.size(); first += keys)
    rows += std::ranges::any_of(values.subspan(first, keys), [](float value) { return value != 0; }) ? 1 : 0;
  return rows;
}

bool is_positive(const WeightsResult& weights) {
  return !weights.derived_signed && !weights.value_weighted && kernel_info(weights.kernel).weights_positive;
}

std::pair<double, double> extremes(const Array& values) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const float value : values.values) {
    if (std::isnan(value)) continue;
    low = std::min(low, static_cast<double>(value));
    high = std::max(high, static_cast<double>(value));
  }
  return low > high ? std::pair{0.0, 1.0} : std::pair{low, high};
}

double percentile(const Array& values, double share) {
  std::vector<float> sorted = values.values;
  std::erase_if(sorted, [](float value) { return std::isnan(value); });
  if (sorted.empty()) return 1;
  const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(sorted.size() - 1) * share);
  std::ranges::nth_element(sorted, sorted.begin() + at);
  return static_cast<double>(sorted[static_cast<std::size_t>(at)]);
}

bool needs_sign(const WeightsResult& weights, const Array& values) {
  if (weights.value_weighted) return false;
  return weights.derived_signed || extremes(values).first < 0;
}

Scale weights_scale(const WeightsResult& weights, const Array& values, const WeightsOptions& options) {
  const auto [low, high] = extremes(values);
  Scale scale;
  if (needs_sign(weights, values)) {
    scale.map = ColourMap::blue_white_red;
    scale.high = std::max({std::abs(low), std::abs(high), 1e-30});
    scale.low = -scale.high;
    scale.label = kernel_info(weights.kernel).implied_weights ? "implied weight, signed" : "weight, signed";
    return scale;
  }
  const double end = options.percentile ? percentile(values, 0.99) : high;
  WeightsOptions named = options;
  named.value_weighted = weights.value_weighted;
  return positive_weights_scale(end > 0 ? end : high, named);
}

std::string panel_title(const WeightsResult& weights, const WeightsResult* softmax, const HeadChoice& head) {
  std::vector<std::string> facts;
  if (const auto entropy = weights_entropy(weights, head)) {
    std::string fact = "entropy " + amount_text(*entropy);
    if (softmax != nullptr && softmax != &weights) {
      if (const auto divergence = weights_divergence(*softmax, weights, head)) {
        fact += ", KL " + amount_text(*divergence);
      }
    }
    facts.push_back(fact + " nats");
  } else if (weights.value_weighted) {
    facts.emplace_back("‖α v W_o‖: no distribution");
  } else {
    const bool derived = kernel_info(weights.kernel).implied_weights;
    facts.emplace_back(derived ? "implied weights, signed; entropy and KL undefined"
                               : "signed; entropy and KL undefined");
  }
  if (weights.untrained) facts.emplace_back("untrained");
  return fmt::format("{}\n{}", weights.kernel.label(), fmt::join(facts, "; "));
}

// Words; patches have numbers instead, unless only some rows are shown.
std::vector<std::string> token_names(const RunResult& run, const std::vector<std::int64_t>& rows,
                                     std::int64_t count) {
  std::vector<std::string> names;
  const bool some =
      !rows.empty() && static_cast<std::int64_t>(rows.size()) < static_cast<std::int64_t>(run.tokens.size());
  if (run.rows > 0 && !some) return names;
  for (std::int64_t index = 0; index < count; ++index) {
    const auto token = rows.empty() ? index : rows[static_cast<std::size_t>(index)];
    if (token >= static_cast<std::int64_t>(run.tokens.size())) return {};
    names.push_back(token_text(run, static_cast<std::size_t>(token)));
  }
  return names;
}

// Of one row what comes after the column of its own token.
void blank_after(Array& values, const std::int64_t row, const std::size_t column) {
  const auto columns = static_cast<std::size_t>(values.extent(1));
  const auto begin = values.values.begin() + row * values.extent(1);
  std::fill(begin + static_cast<std::ptrdiff_t>(std::min(column + 1, columns)),
            begin + static_cast<std::ptrdiff_t>(columns), std::numeric_limits<float>::quiet_NaN());
}

// A layer's weights in the order of the request. They live as long as `run`.
std::vector<std::shared_ptr<const WeightsResult>> weights_of(const RunResult& run, int layer) {
  std::vector<std::shared_ptr<const WeightsResult>> all;
  for (const auto& entry : run.quantities.all<WeightsKey>()) {
    if (entry.result->layer != layer) continue;
    auto weights = weights_of_queries(run, *entry.result);
    if (!weights->rows.empty() || queries_alone(run.model) == 0) all.push_back(std::move(weights));
  }
  return all;
}

// One range for all positive maps, so that colours can be compared across them.
void share_scales(std::vector<HeatMapPanel>& panels, const WeightsOptions& options) {
  double high = 0;
  for (const auto& panel : panels) {
    if (panel.scale.map != ColourMap::blue_white_red) high = std::max(high, panel.scale.high);
  }
  for (auto& panel : panels) {
    if (panel.scale.map == ColourMap::blue_white_red) continue;
    panel.scale.high = high;
    panel.scale.low = options.logarithmic ? high * logarithmic_share : 0;
    panel.scale.shared = true;
  }
}

} // namespace

Array head_weights(const WeightsResult& weights, const HeadChoice& head) {
  require_heads(head, head_count(weights), weights.kernel.label());
  Array map;
  map.shape = {weights.weights.extent(1), weights.weights.extent(2)};
  const auto heads = heads_of(weights, head);
  const auto first = weights.weights.slice(heads.front());
  map.values.assign(first.begin(), first.end());
  for (std::size_t index = 1; index < heads.size(); ++index) {
    const auto next = weights.weights.slice(heads[index]);
    for (std::size_t cell = 0; cell < next.size(); ++cell) {
      float& value = map.values[cell];
      value = head.fusion == HeadFusion::min   ? std::min(value, next[cell])
              : head.fusion == HeadFusion::max ? std::max(value, next[cell])
                                               : value + next[cell];
    }
  }
  if (heads.size() > 1 && head.fusion == HeadFusion::mean) {
    for (float& value : map.values) value /= static_cast<float>(heads.size());
  }
  return map;
}

std::optional<double> weights_entropy(const WeightsResult& weights, const HeadChoice& head) {
  if (!is_positive(weights) || !has_head(weights, head)) return std::nullopt;
  double sum = 0, rows = 0;
  for (const auto index : heads_of(weights, head)) {
    rows += rows_that_ask(weights, index);
    for (const float value : weights.weights.slice(index)) {
      const auto p = static_cast<double>(value);
      sum -= p > 0 ? p * std::log(p) : 0;
    }
  }
  return rows > 0 ? std::optional(sum / rows) : std::nullopt;
}

std::optional<double> weights_divergence(const WeightsResult& softmax, const WeightsResult& weights,
                                         const HeadChoice& head) {
  if (!is_positive(weights) || !is_positive(softmax) || softmax.weights.shape != weights.weights.shape ||
      softmax.rows != weights.rows || !has_head(weights, head)) {
    return std::nullopt;
  }
  double sum = 0, rows = 0;
  for (const auto index : heads_of(weights, head)) {
    rows += rows_that_ask(softmax, index);
    const auto p = softmax.weights.slice(index), q = weights.weights.slice(index);
    for (std::size_t cell = 0; cell < p.size(); ++cell) {
      const auto probability = static_cast<double>(p[cell]);
      sum += probability * (std::log(std::max(probability, probability_floor)) -
                            std::log(std::max(static_cast<double>(q[cell]), probability_floor)));
    }
  }
  return rows > 0 ? std::optional(sum / rows) : std::nullopt;
}

void blank_later_keys(Array& values, const WeightsPart& part) {
  const std::int64_t rows = values.extent(0), columns = values.extent(1);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t last_query = part.first_row + (row + 1) * part.row_count / rows - 1;
    for (std::int64_t column = 0; column < columns; ++column)
      if (part.first_column + column * part.column_count / columns > last_query)
        values.values[static_cast<std::size_t>(row * columns + column)] =
            std::numeric_limits<float>::quiet_NaN();
  }
}

const char* weights_quantity(bool value_weighted) {
  return value_weighted ? "‖α v W_o‖" : "attention weight";
}

Scale positive_weights_scale(double high, const WeightsOptions& options) {
  Scale scale;
  scale.map = options.map;
  scale.high = high > 0 ? high : 1;
  scale.logarithmic = options.logarithmic;
  scale.low = options.logarithmic ? scale.high * logarithmic_share : 0;
  scale.label = weights_quantity(options.value_weighted);
  if (options.percentile) scale.label += ", up to the 99th percentile";
  if (options.logarithmic)
    scale.label +=
        fmt::format(", from {} of the largest", logarithmic_share_text); // smaller ones have its colour
  return scale;
}

HeatMapPanel weights_panel(const RunResult& run, const WeightsResult& weights, const WeightsResult* softmax,
                           const WeightsOptions& options) {
  HeatMapPanel panel;
  panel.values = head_weights(weights, options.head);
  panel.title = panel_title(weights, softmax, options.head);
  panel.x_label = run.rows > 0 ? "key token" : "key";
  panel.y_label = run.rows > 0 ? "query token" : "query";
  const bool causal = is_causal(run.model);
  if (causal) panel.missing = MissingCells::grey;
  const std::vector<ShownToken> shown = shown_tokens(run, options.tokens);
  if (shown.size() != run.tokens.size()) {
    panel.values = shown_weights(panel.values, weights.rows, shown);
    for (std::size_t token = 0; token < shown.size(); ++token) {
      panel.x_ticks.push_back(shown[token].text);
      if (!weights.rows.empty() && !contains_any(shown[token], weights.rows)) continue;
      panel.y_ticks.push_back(shown[token].text);
      if (causal) blank_after(panel.values, std::ssize(panel.y_ticks) - 1, token);
      if (run.query && shown_index(shown, run.query) == static_cast<int>(token))
        panel.marks = {static_cast<int>(panel.y_ticks.size()) - 1};
    }
    panel.scale = weights_scale(weights, panel.values, options);
    return panel;
  }
  for (std::size_t row = 0; causal && row < weights.rows.size(); ++row)
    blank_after(panel.values, static_cast<std::int64_t>(row), static_cast<std::size_t>(weights.rows[row]));
  panel.scale = weights_scale(weights, panel.values, options);
  panel.x_ticks = token_names(run, {}, static_cast<std::int64_t>(run.tokens.size()));
  if (const auto left_out = static_cast<std::int64_t>(panel.x_ticks.size()) - panel.values.extent(1);
      left_out > 0)
    panel.x_ticks.erase(panel.x_ticks.begin(), panel.x_ticks.begin() + left_out); // queries alone
  panel.y_ticks = token_names(run, weights.rows, panel.values.extent(0));
  if (run.query) {
    const auto found = std::find(weights.rows.begin(), weights.rows.end(), *run.query);
    if (found != weights.rows.end()) panel.marks = {static_cast<int>(found - weights.rows.begin())};
    if (weights.rows.empty()) panel.marks = {static_cast<int>(*run.query)};
  }
  return panel;
}

HeatMapPanel weights_difference(const HeatMapPanel& a, const HeatMapPanel& b, bool value_weighted) {
  if (a.values.shape != b.values.shape)
    throw UsageError(side_name(Shown::difference), "the two have different numbers of tokens",
                     "wait until both have run");
  HeatMapPanel panel = heat_map_difference(a, b);
  panel.scale.logarithmic = panel.scale.shared = false;
  panel.scale.label = difference_label(weights_quantity(value_weighted));
  return panel;
}

Figure weights_figure(const RunResult& run, int layer, const WeightsOptions& options) {
  Figure figure;
  figure.title = fmt::format("{} · layer {} · {}", run.model.name, layer, options.head.text());
  const WeightsResult* softmax = nullptr;
  bool teacher_forced = false;
  const auto all = weights_of(run, layer);
  for (const auto& weights : all) {
    if (softmax == nullptr && kernel_info(weights->kernel).exact_softmax) softmax = weights.get();
    teacher_forced = teacher_forced || weights->teacher_forced;
  }
  figure.subtitle =
      std::string("Attention weights on the same queries and keys, ") +
      (teacher_forced ? "softmax inputs (teacher-forced)" : "this run (" + run.schedule.summary() + ")");
  if (options.value_weighted) figure.subtitle += "; value-weighted: ‖α_ij v_j W_o‖";
  if (is_causal(run.model)) figure.subtitle += std::string("; ") + causal_note;
  if (!options.head.head) figure.subtitle += "; entropy and KL(softmax ‖ kernel) are means over heads";
  std::vector<HeatMapPanel> panels;
  for (const auto& weights : all) {
    if (!has_head(*weights, options.head)) {
      figure.subtitle += fmt::format("; {} has no {}", weights->kernel.label(), options.head.text());
      continue;
    }
    panels.push_back(weights_panel(run, *weights, softmax, options));
  }
  if (options.shared_scale) share_scales(panels, options);
  figure.columns = panels.size() > 4 ? 3 : 0;
  for (auto& panel : panels) figure.panels.emplace_back(std::move(panel));
  return figure;
}

Figure weights_grid_figure(const RunResult& run, std::span<const int> layers,
                           std::span<const HeadChoice> heads, const WeightsOptions& options) {
  Figure figure;
  std::vector<HeatMapPanel> all;
  for (const int layer : layers) {
    const auto all_kernels = weights_of(run, layer);
    for (const HeadChoice& head : heads) {
      WeightsOptions one = options;
      one.head = head;
      one.shared_scale = false;
      std::vector<HeatMapPanel> row;
      const WeightsResult* softmax = nullptr;
      int kernels = 0;
      for (const auto& of_kernel : all_kernels) {
        const WeightsResult& weights = *of_kernel;
        if (softmax == nullptr && kernel_info(weights.kernel).exact_softmax) softmax = &weights;
        ++kernels;
        if (has_head(weights, head)) {
          row.push_back(weights_panel(run, weights, softmax, one));
          std::string& title = row.back().title;
          title.insert(title.find('\n') + 1, fmt::format("layer {} · {}\n", layer, head.text()));
        } else {
          row.push_back({.title = weights.kernel.label(),
                         .values = {},
                         .scale = {},
                         .x_label = {},
                         .y_label = {},
                         .x_ticks = {},
                         .y_ticks = {},
                         .marks = {},
                         .note = "has no " + head.text()});
        }
      }
      figure.columns = kernels;
      if (!options.shared_scale) share_scales(row, options);
      std::ranges::move(row, std::back_inserter(all));
    }
  }
  if (options.shared_scale) share_scales(all, options);
  const bool forced = std::ranges::any_of(run.quantities.all<WeightsKey>(),
                                          [](const auto& each) { return each.key.teacher_forced; });
  figure.title = run.model.name + " · attention weights by layer, head and kernel";
  figure.subtitle =
      std::string("On the same queries and keys, ") +
      (forced ? "softmax inputs (teacher-forced)" : "this run (" + run.schedule.summary() + ")") +
      (options.shared_scale ? "; one scale" : "; one scale a row");
  if (is_causal(run.model)) figure.subtitle += std::string("; ") + causal_note;
  for (auto& panel : all) figure.panels.emplace_back(std::move(panel));
  return figure;
}

} // namespace hydrascope::app
