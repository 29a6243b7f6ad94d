#include "app/views/deletion_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "app/views/selection.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

// Blue and orange of Okabe and Ito, and grey: distinct for the colour-blind and in print.
constexpr Colour blue{0.0f, 0.447f, 0.698f, 1}, orange{0.902f, 0.624f, 0.0f, 1}, grey{0.5f, 0.5f, 0.5f, 1};

double area_of(const DeletionCurve& curve, const std::vector<double>& shares, bool probability) {
  const std::vector<double>& heights = probability ? curve.probabilities : curve.values;
  double area = 0;
  for (std::size_t i = 1; i < heights.size(); ++i)
    area += (shares[i] - shares[i - 1]) * (heights[i] + heights[i - 1]) / 2;
  return area;
}

// One range for all panels, so that A and B can be compared.
void share_range(Figure& figure) {
  if (figure.panels.size() < 2) return;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const FigurePanel& panel : figure.panels) {
    for (const LinesPanel::Line& line : std::get<LinesPanel>(panel).lines) {
      for (const double value : line.y) {
        if (!std::isfinite(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
  }
  if (!(low <= high)) return;
  const double room = high > low ? 0.06 * (high - low) : 0.5;
  for (FigurePanel& panel : figure.panels)
    std::get<LinesPanel>(panel).y_axis = Axis{low - room, high + room, false};
}

} // namespace

DeletionView deletion_view(const MeasuredDeletion& measured, bool probability, const std::string& side) {
  const RunResult& run = *measured.run;
  const DeletionResult& deletion = *measured.deletion;
  probability = probability && !deletion.most_first.probabilities.empty();
  DeletionView view;
  view.lines.title =
      fmt::format("{}{}order: layer {}, {}", side, side.empty() ? "" : " · ", deletion.key.layer,
                  run.schedule.layers.at(static_cast<std::size_t>(deletion.key.layer)).label());
  view.lines.x_label = run.rows > 0 ? "share of patches hidden" : "share of tokens masked";
  view.lines.y_label = probability ? "probability" : deletion.target;
  const auto add = [&](const char* name, const DeletionCurve& curve, const Colour& colour) {
    view.lines.lines.push_back(
        {name, deletion.shares, probability ? curve.probabilities : curve.values, colour});
    view.areas.push_back(number_text(area_of(curve, deletion.shares, probability)));
  };
  add("most important first", deletion.most_first, blue);
  add("least important first", deletion.least_first, orange);
  add("random", deletion.random, grey);
  return view;
}

Figure deletion_figure(std::span<const MeasuredDeletion> measured, bool probability) {
  Figure figure;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const std::string side = measured.size() < 2 ? "" : side_name(static_cast<Side>(i));
    DeletionView view = deletion_view(measured[i], probability, side);
    if (figure.title.empty())
      figure.title =
          fmt::format("{} · deletion of {}", measured[i].run->model.name, measured[i].deletion->target);
    figure.subtitle +=
        fmt::format("{}{}", figure.subtitle.empty() ? "" : "; ", side.empty() ? "" : side + ": ");
    for (std::size_t curve = 0; curve < view.areas.size(); ++curve)
      figure.subtitle += fmt::format("{}{}, area {}", curve == 0 ? "" : "; ", view.lines.lines[curve].name,
                                     view.areas[curve]);
    figure.panels.emplace_back(std::move(view.lines));
  }
  share_range(figure);
  if (!figure.panels.empty()) figure.subtitle += std::string("; ") + deletion_note;
  return figure;
}

} // namespace hydrascope::app
