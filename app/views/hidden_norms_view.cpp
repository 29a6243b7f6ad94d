#include "app/views/hidden_norms_view.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "app/views/table_views.h"
#include "engine/base/error.h"

namespace hydrascope::app {

HeatMapPanel hidden_norms_panel(const RunResult& run, const Array& norms) {
  HeatMapPanel panel;
  panel.title = run.schedule.summary();
  panel.values = norms;
  const auto largest = std::ranges::max_element(norms.values);
  panel.scale.high = largest == norms.values.end() ? 1 : static_cast<double>(*largest);
  panel.scale.label = "‖hidden state‖₂";
  panel.x_label = "token";
  panel.y_label = "before layer";
  if (run.rows == 0)
    for (const TokenInfo& token : run.tokens) panel.x_ticks.push_back(token.text);
  const std::int64_t states = norms.extent(0);
  for (std::int64_t state = 0; state + 1 < states; ++state) panel.y_ticks.push_back(fmt::format("{}", state));
  panel.y_ticks.emplace_back("last");
  const auto last = norms.slice(states - 1);
  std::vector<float> sorted(last.begin(), last.end());
  std::ranges::sort(sorted);
  const auto most = static_cast<std::size_t>(std::ranges::max_element(last) - last.begin());
  panel.note = fmt::format("after the last layer: median {:.1f}, largest {:.1f} ({})",
                           sorted[sorted.size() / 2], sorted.back(), run.tokens.at(most).text);
  return panel;
}

HeatMapPanel hidden_norms_difference(const HeatMapPanel& a, const HeatMapPanel& b) {
  if (a.values.shape != b.values.shape)
    throw UsageError("A − B", "A's tokens and B's differ in number", "compare runs of the same input");
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

} // namespace hydrascope::app
