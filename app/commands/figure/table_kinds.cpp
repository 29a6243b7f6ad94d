// Numbers by layer and head of one input, or by kernel on data: entropy, kl, table.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/commands/figure/kinds.h"
#include "app/commands/figure/task.h"
#include "app/views/table_views.h"
#include "engine/base/error.h"
#include "engine/run/quantities/head_quantity.h"

namespace hydrascope::app {
namespace {

using Quantity = double KernelMeans::*;

TeacherForcedOutcome measured(FigureTask& task, TeacherForcedRequest& request) {
  const FigureOptions& options = task.options;
  request = measure_request(options.common, options.data);
  if (!options.kernels.empty()) request.kernels = parse_kernel_list(options.kernels);
  request.lengths = options.lengths;
  request.joined = options.joined;
  return measure_with_progress(request, "figure " + options.kind);
}

std::string kernel_text(const KernelMeasure& measure) {
  return measure.kernel.label() + (measure.untrained ? " (untrained)" : "");
}

// What one panel shows: the measures of one data set, or of one length of its pieces.
struct Series {
  std::string name;
  std::vector<const KernelMeasure*> measures;
};

// In the order in which they were measured.
std::vector<Series> series_of(const TeacherForcedOutcome& outcome) {
  std::vector<Series> all;
  const std::vector<std::string> names = data_names(outcome);
  for (std::size_t index = 0; index < names.size(); ++index) {
    const KernelMeasure& measure = outcome.measures[index];
    const std::string name =
        measure.length ? fmt::format("{}, {} tokens", names[index], *measure.length) : names[index];
    auto found = std::ranges::find(all, name, &Series::name);
    if (found == all.end()) found = all.insert(found, Series{name, {}});
    found->measures.push_back(&measure);
  }
  return all;
}

Figure with_data(FigureTask& task, Figure figure, const TeacherForcedRequest& request,
                 const TeacherForcedOutcome& outcome, const std::string& what) {
  const std::string model = read_model_info(request.model_folder).name;
  figure.title = model + " · " + what;
  figure.subtitle = "Teacher-forced: softmax in every layer; mean over rows, heads, layers and items";
  figure.provenance =
      data_provenance(task, request.model_folder, outcome.model_hash, outcome.adapters, request.data);
  return figure;
}

// Bars by kernel, and lines over the layers.
Figure data_figure(FigureTask& task, Quantity quantity, const std::string& name) {
  TeacherForcedRequest request;
  const TeacherForcedOutcome outcome = measured(task, request);
  Figure figure;
  for (const Series& series : series_of(outcome)) {
    BarsPanel bars;
    LinesPanel lines;
    bars.title = lines.title = series.name;
    bars.x_label = lines.y_label = name;
    lines.x_label = "layer";
    for (const KernelMeasure* const each : series.measures) {
      const KernelMeasure& measure = *each;
      if (std::isnan(measure.mean.*quantity)) continue;
      bars.labels.push_back(kernel_text(measure));
      bars.values.push_back(measure.mean.*quantity);
      bars.colours.push_back(kernel_colour(measure.kernel.name));
      LinesPanel::Line line;
      line.name = kernel_text(measure);
      line.colour = bars.colours.back();
      line.style = LinesPanel::Style::marked;
      for (std::size_t layer = 0; layer < measure.layers.size(); ++layer) {
        line.x.push_back(static_cast<double>(layer));
        line.y.push_back(measure.layers[layer].*quantity);
      }
      lines.lines.push_back(std::move(line));
    }
    if (bars.values.empty()) continue;
    figure.panels.emplace_back(std::move(bars));
    figure.panels.emplace_back(std::move(lines));
  }
  figure.columns = 2;
  return with_data(task, std::move(figure), request, outcome, name);
}

bool of_data(const FigureOptions& options) {
  return !options.data.data.empty() && options.image.empty() && options.text.empty();
}

} // namespace

Figure draw_head_table(FigureTask& task) {
  const std::string& name = task.options.kind;
  RunTask run = run_task(task);
  if (task.options.kernels.empty())
    run.request.quantities.add(HeadTableKey{name});
  else
    for (const KernelSpec& kernel : parse_kernel_list(task.options.kernels))
      run.request.quantities.add(HeadTableKey{name, kernel});
  const auto result = task.runner.run(run.request);
  return finished(task, head_table_figure(*result, name), run.request, *result);
}

Figure draw_hidden_norms(FigureTask& task) {
  RunTask run = run_task(task);
  run.request.quantities = {HiddenNormsKey{}};
  const auto result = task.runner.run(run.request);
  return finished(task, hidden_norms_figure(*result, *result->quantities.find(HiddenNormsKey{})), run.request,
                  *result);
}

Figure draw_entropy(FigureTask& task) {
  return of_data(task.options) ? data_figure(task, &KernelMeans::entropy, "entropy (nats)")
                               : draw_head_table(task);
}

Figure draw_divergence(FigureTask& task) {
  return of_data(task.options) ? data_figure(task, &KernelMeans::kl, "KL(softmax ‖ kernel) (nats)")
                               : draw_head_table(task);
}

Figure draw_table(FigureTask& task) {
  TeacherForcedRequest request;
  const TeacherForcedOutcome outcome = measured(task, request);
  using Better = TablePanel::Better;
  const std::vector<std::pair<TablePanel::Column, Quantity>> columns = {
      {{"KL (nats)", Better::neither, 3}, &KernelMeans::kl},
      {{"entropy (nats)", Better::neither, 3}, &KernelMeans::entropy},
      {{"ρ", Better::neither, 3}, &KernelMeans::spearman},
      {{"‖out‖ ratio", Better::neither, 3}, &KernelMeans::ratio},
      {{"cosine", Better::neither, 3}, &KernelMeans::cosine},
      {{"error", Better::neither, 3}, &KernelMeans::relative_error}};
  Figure figure;
  for (const Series& series : series_of(outcome)) {
    TablePanel table;
    table.row_name = "kernel";
    for (const auto& [column, quantity] : columns) table.columns.push_back(column);
    for (const KernelMeasure* const each : series.measures) {
      const KernelMeasure& measure = *each;
      table.title = fmt::format("{}: {} items, {} tokens", series.name, measure.items, measure.tokens);
      table.rows.push_back(kernel_text(measure));
      table.values.emplace_back();
      for (const auto& [column, quantity] : columns) table.values.back().push_back(measure.mean.*quantity);
    }
    table.note =
        "ρ: Spearman's, of weight and q·k/√d within rows; ratio, cosine, relative error: of the output "
        "against softmax's; — undefined for signed weights";
    figure.panels.emplace_back(std::move(table));
  }
  figure.columns = 1;
  return with_data(task, std::move(figure), request, outcome, "kernels against softmax");
}

} // namespace hydrascope::app
