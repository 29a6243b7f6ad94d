// Figures of measurements: timing and scaling, measured by the call itself; loss, roofline and recall, from
// the files that other commands wrote. recall without a file trains the models.
#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/figure/kinds.h"
#include "app/commands/figure/task.h"
#include "app/commands/output.h"
#include "app/commands/recall.h"
#include "app/views/scaling_view.h"
#include "app/views/table_views.h"
#include "app/views/timing_view.h"
#include "engine/base/error.h"
#include "engine/base/json_limits.h"
#include "engine/base/paths.h"
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

using nlohmann::json;
using Style = LinesPanel::Style;

std::vector<std::filesystem::path> data_files(const FigureOptions& options, const char* what) {
  if (options.data.data.empty())
    throw UsageError("figure " + options.kind, "there are no numbers to draw",
                     std::string("name ") + what + " with --data");
  return {options.data.data.begin(), options.data.data.end()};
}

LinesPanel::Line read_curve(const std::filesystem::path& file) {
  std::istringstream text(read_text_file(file));
  std::string row;
  std::getline(text, row);
  const std::string remedy = "name the file that distill or finetune wrote by --curve";
  if (!row.starts_with("step,loss"))
    throw ForeignFile(file.string(), "is no loss curve: its first line is not step,loss", remedy);
  LinesPanel::Line line;
  for (int number = 2; std::getline(text, row); ++number) {
    double step = 0, loss = 0;
    char comma = 0;
    if (!(std::istringstream(row) >> step >> comma >> loss) || comma != ',')
      throw BrokenFile(file.string(), fmt::format("line {} is not step,loss: '{}'", number, row), remedy);
    line.x.push_back(step);
    line.y.push_back(loss);
  }
  if (line.x.empty()) throw BrokenFile(file.string(), "holds no step", remedy);
  return line;
}

// Reads a JSON list of objects with a kernel and these numbers, but those that were not measured ("skipped").
// Throws ForeignFile, BrokenFile.
std::vector<json> read_records(const std::filesystem::path& file, const std::vector<std::string>& numbers,
                               const std::string& remedy) {
  const auto list = parse_json<json>(read_text_file(file));
  if (!list.is_array() || list.empty()) throw ForeignFile(file.string(), "is no JSON list", remedy);
  std::vector<json> records;
  for (const json& record : list) {
    if (!record.is_object() || !record.contains("kernel") || !record["kernel"].is_string())
      throw BrokenFile(file.string(), "an entry names no kernel", remedy);
    if (record.contains("skipped")) continue;
    for (const std::string& number : numbers) {
      if (!record.contains(number) || !record[number].is_number())
        throw BrokenFile(file.string(),
                         "the entry of " + record["kernel"].get<std::string>() + " has no " + number, remedy);
    }
    records.push_back(record);
  }
  return records;
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
    for (const json& record :
         read_records(file, {"flops_per_second", "bytes_per_second", "share_of_bandwidth", "share_of_flops"},
                      "name what `hydrascope bench kernels --json` printed")) {
      const std::string its_device = record.value("device", ""), its_type = record.value("dtype", "");
      if (!device) device = its_device;
      if (!dtype) dtype = its_type;
      if (its_device != *device || its_type != *dtype) {
        (its_device != *device ? other_devices : other_types) = true;
        continue;
      }
      const double flops = record["flops_per_second"], bytes = record["bytes_per_second"];
      const double of_bandwidth = record["share_of_bandwidth"], of_flops = record["share_of_flops"];
      if (!(flops > 0) || !(bytes > 0)) continue;
      const double size = record.value("H", 1.0) * record.value("N", 0.0) * record.value("d", 1.0);
      if (of_bandwidth > 0) largest = std::max(largest, std::pair(size, bytes / of_bandwidth));
      if (of_flops > 0) limits.matrix_rate = std::max(limits.matrix_rate, flops / of_flops);
      RooflineLine& line = line_of(lines, record["kernel"].get<std::string>());
      line.intensity.push_back(flops / bytes);
      line.rate.push_back(flops / 1e9);
      line.labels.push_back(record.contains("N") ? fmt::format("{}", record["N"].get<std::int64_t>()) : "");
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
std::vector<json> recall_records(const FigureOptions& options) {
  const std::string remedy = "name a JSON list of {kernel, accuracy, entropy}";
  std::vector<json> records;
  if (options.data.data.empty() && !options.kernels.empty()) {
    RecallRequest request = recall_request(RecallPreset::small);
    request.settings.execution = options.common.execution;
    for (const auto& record : recall_kernels(request, parse_kernel_list(options.kernels)))
      records.emplace_back(record);
    return records;
  }
  for (const auto& file : data_files(options, "what `recall --json` printed")) {
    for (json& record : read_records(file, {"accuracy"}, remedy)) {
      if (!record.contains("entropy") || !(record["entropy"].is_number() || record["entropy"].is_null()))
        throw BrokenFile(file.string(),
                         "the entry of " + record["kernel"].get<std::string>() + " has no entropy", remedy);
      records.push_back(std::move(record));
    }
  }
  return records;
}

} // namespace

Figure draw_recall(FigureTask& task) {
  LinesPanel panel;
  panel.x_label = "entropy of the attention weights (nats)";
  panel.y_label = "accuracy (%)";
  for (const json& record : recall_records(task.options)) {
    const std::string kernel = record["kernel"];
    if (record["entropy"].is_null()) {
      task.notes.push_back(kernel + " has signed weights, which have no entropy: it is left out");
      continue;
    }
    LinesPanel::Line line;
    line.x = {record["entropy"].get<double>()};
    line.y = {record["accuracy"].get<double>() * 100};
    line.labels = {kernel};
    line.style = Style::points;
    line.colour = kernel_colour(kernel);
    panel.lines.push_back(std::move(line));
  }
  if (panel.lines.empty())
    throw Error("figure recall", "no kernel's attention weights have an entropy", "add one such as softmax");
  return plot_of(task, "Associative recall against entropy", std::move(panel),
                 {task.options.data.data.begin(), task.options.data.data.end()});
}

} // namespace hydrascope::app
