// Figures of measurements: timing and scaling, measured by the call itself; loss, roofline and recall, from
// the files that other commands wrote. recall without a file trains the models.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/figure/kinds.h"
#include "app/commands/figure/measured_data.h"
#include "app/commands/figure/task.h"
#include "app/commands/output.h"
#include "app/commands/recall.h"
#include "app/views/scaling_view.h"
#include "app/views/table_views.h"
#include "app/views/timing_view.h"
#include "engine/base/error.h"
#include "engine/run/devices.h"
#include "engine/run/quantities/layer_times.h"

namespace hydrascope::app {

// What the window's panel shows once its passes have been timed.
Figure draw_timing(FigureTask& task) {
  constexpr int passes = 10;
  RunTask run = run_task(task);
  run.request.quantities.add(LayerTimesKey{.passes = passes});
  const RunResult result = *task.runner.run(run.request);
  TimingRecord times;
  times.add(result);
  TimingView view = timing_view(result, times, std::nullopt);
  view.runs = fmt::format("median of {} passes after a warm-up", passes);
  return finished(task, timing_figure(view), run.request, result);
}

Figure draw_scaling(FigureTask& task) {
  const FigureOptions& options = task.options;
  const std::filesystem::path folder = model_folder(options.common, InputKind::image);
  const ModelInfo model = read_model_info(folder);
  std::vector<KernelSpec> kernels;
  if (options.kernels.empty()) {
    kernels = softmax_forms(device_name(options.common.execution.device));
    kernels.insert(kernels.end(), {{"hydra-cosine", {}}, {"hedgehog", {}}});
  } else {
    kernels = parse_kernel_list(options.kernels);
  }
  std::vector<std::int64_t> lengths = options.lengths.empty() ? scaling_lengths() : options.lengths;
  ScalingCurves curves;
  const ExecutionOptions& execution = options.common.execution;
  curves.setting = {
      .dtype = execution.dtype, .threads = execution.threads, .device = device_name(execution.device)};
  set_heads_of(model, curves.setting);
  {
    ProgressBar bar("figure scaling");
    const auto total = static_cast<std::int64_t>(kernels.size() * lengths.size());
    for (const KernelSpec& kernel : kernels) {
      ScalingMeasurer measurer(kernel, curves.setting);
      for (const std::int64_t tokens : lengths) {
        curves.points.push_back(measurer.measure(tokens));
        bar.show(static_cast<std::int64_t>(curves.points.size()), total);
      }
    }
  }
  Figure figure = scaling_figure(curves, scaling_lines(curves, kernels));
  figure.provenance = data_provenance(task, {}, "", {}, {});
  return figure;
}

namespace {

using Style = LinesPanel::Style;

std::vector<std::filesystem::path> data_files(const FigureOptions& options, const char* what) {
  if (options.data.data.empty())
    throw UsageError("figure " + options.kind, "there are no numbers to draw",
                     std::string("name ") + what + " with --data");
  return {options.data.data.begin(), options.data.data.end()};
}

Figure plot_of(const FigureTask& task, std::string title, LinesPanel panel,
               const std::vector<std::filesystem::path>& files) {
  Figure figure;
  figure.title = std::move(title);
  figure.panels.emplace_back(std::move(panel));
  figure.provenance = data_provenance(task, {}, "", {}, files);
  return figure;
}

// Without their endings, where that tells them apart.
std::vector<std::string> curve_names(const std::vector<std::filesystem::path>& files) {
  std::vector<std::filesystem::path> stems;
  for (const auto& file : files) {
    const std::filesystem::path stem = file.parent_path() / file.stem();
    if (std::ranges::find(stems, stem) != stems.end()) return telling_names(files);
    stems.push_back(stem);
  }
  return telling_names(stems);
}

} // namespace

Figure draw_loss(FigureTask& task) {
  const auto files = data_files(task.options, "the curves that distill, finetune or recall wrote");
  LinesPanel panel;
  panel.x_label = "step";
  panel.y_label = "training loss";
  panel.log_y = task.options.logarithmic;
  const std::vector<std::string> names = curve_names(files);
  for (const auto& file : files) {
    panel.lines.push_back(read_curve(file));
    panel.lines.back().name = names[panel.lines.size() - 1];
    panel.lines.back().colour = category_colour(panel.lines.size() - 1);
  }
  return plot_of(task, "Training loss", std::move(panel), files);
}

namespace {

// The line of a kernel, added if there is none yet.
RooflineLine& line_of(std::vector<RooflineLine>& lines, const std::string& kernel) {
  const auto found = std::ranges::find(lines, kernel, &RooflineLine::kernel);
  if (found != lines.end()) return *found;
  lines.push_back({.kernel = kernel, .intensity = {}, .rate = {}, .labels = {}});
  return lines.back();
}

} // namespace

Figure draw_roofline(FigureTask& task) {
  const auto files = data_files(task.options, "what `bench kernels --json` printed");
  std::vector<RooflineLine> lines;
  MachineLimits limits;
  // H·N·d, and the bandwidth, which is a triad's of as many bytes: that of small ones is a cache's.
  std::pair<double, double> largest;
  std::optional<std::string> device, dtype; // of the first entry: others have other limits
  bool other_devices = false, other_types = false;
  for (const auto& file : files) {
    for (const RooflineRecord& record : read_roofline_records(file)) {
      if (!device) device = record.device;
      if (!dtype) dtype = record.dtype;
      if (record.device != *device || record.dtype != *dtype) {
        (record.device != *device ? other_devices : other_types) = true;
        continue;
      }
      const double flops = record.flops_per_second, bytes = record.bytes_per_second;
      if (!(flops > 0) || !(bytes > 0)) continue;
      if (record.share_of_bandwidth > 0)
        largest = std::max(largest, std::pair(record.size, bytes / record.share_of_bandwidth));
      if (record.share_of_flops > 0)
        limits.matrix_rate = std::max(limits.matrix_rate, flops / record.share_of_flops);
      RooflineLine& line = line_of(lines, record.kernel);
      line.intensity.push_back(flops / bytes);
      line.rate.push_back(flops / 1e9);
      line.labels.push_back(record.tokens ? fmt::format("{}", *record.tokens) : "");
    }
  }
  limits.bandwidth = largest.second;
  if (lines.empty() || !(limits.bandwidth > 0) || !(limits.matrix_rate > 0))
    throw Error(files.front().string(), "no entry has a share of the machine's limits", "measure again");
  if (other_devices)
    task.notes.push_back(fmt::format("only the entries of {} are drawn, the device of the first one",
                                     device->empty() ? "no named device" : *device));
  if (other_types)
    task.notes.push_back("only the entries of " + *dtype + " are drawn, the type of the first one");
  Figure figure = plot_of(task, "Roofline" + (device->empty() ? "" : " · " + *device),
                          roofline_panel(limits, lines), files);
  figure.subtitle =
      "Dashed: bandwidth, of the largest input, and matrix rate of the same run; beside each point N";
  return figure;
}

namespace {

// The entries of the files that `recall --json` printed; with --kernels alone, of models trained with the
// small preset.
std::vector<RecallRecord> recall_records(const FigureOptions& options) {
  std::vector<RecallRecord> records;
  if (options.data.data.empty() && !options.kernels.empty()) {
    RecallRequest request = recall_request(RecallPreset::small);
    request.settings.execution = options.common.execution;
    for (const auto& record : recall_kernels(request, parse_kernel_list(options.kernels))) {
      const auto& entropy = record["entropy"];
      records.push_back({record["kernel"], record["accuracy"],
                         entropy.is_null() ? std::nullopt : std::optional(entropy.get<double>())});
    }
    return records;
  }
  for (const auto& file : data_files(options, "what `recall --json` printed"))
    std::ranges::move(read_recall_records(file), std::back_inserter(records));
  return records;
}

} // namespace

Figure draw_recall(FigureTask& task) {
  LinesPanel panel;
  panel.x_label = "entropy of the attention weights (nats)";
  panel.y_label = "accuracy (%)";
  for (const RecallRecord& record : recall_records(task.options)) {
    if (!record.entropy) {
      task.notes.push_back(record.kernel + " has signed weights, which have no entropy: it is left out");
      continue;
    }
    LinesPanel::Line line;
    line.x = {*record.entropy};
    line.y = {record.accuracy * 100};
    line.labels = {record.kernel};
    line.style = Style::points;
    line.colour = kernel_colour(record.kernel);
    panel.lines.push_back(std::move(line));
  }
  if (panel.lines.empty())
    throw Error("figure recall", "no kernel's attention weights have an entropy", "add one such as softmax");
  return plot_of(task, "Associative recall against entropy", std::move(panel),
                 {task.options.data.data.begin(), task.options.data.data.end()});
}

} // namespace hydrascope::app
