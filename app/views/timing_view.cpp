#include "app/views/timing_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"

namespace hydrascope::app {

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

std::string setting_of(const RunResult& run) {
  std::vector<std::string> paths;
  for (const LayerRun& layer : run.layers) {
    if (!layer.path.empty() && std::ranges::count(paths, layer.path) == 0) paths.push_back(layer.path);
  }
  return fmt::format("{} {}, {} {}, {}, peak {:.0f} MB, N = {}", run.device, run.dtype, run.threads,
                     run.threads == 1 ? "thread" : "threads", fmt::join(paths, " and "),
                     static_cast<double>(run.peak_bytes) / 1e6, run.tokens.size());
}

std::string runs_of(const std::vector<TimingRow>& rows) {
  if (rows.empty()) return "n = 0";
  const auto [least, most] =
      std::ranges::minmax_element(rows, {}, [](const TimingRow& row) { return row.time.runs; });
  return least->time.runs == most->time.runs ? fmt::format("n = {}", most->time.runs)
                                             : fmt::format("n = {} to {}", least->time.runs, most->time.runs);
}

KernelTiming& entry_of(std::vector<KernelTiming>& kernels, const KernelSpec& kernel) {
  const auto found = std::ranges::find(kernels, kernel, &KernelTiming::kernel);
  if (found != kernels.end()) return *found;
  kernels.emplace_back().kernel = kernel;
  return kernels.back();
}

double milliseconds(const RepeatedTime& time, double seconds) {
  return time.runs > 0 ? seconds * 1e3 : nothing;
}

} // namespace

std::optional<Flops> flops_of_run(const RunResult& run) {
  try {
    const Architecture architecture = architecture_of_model(run.model.folder);
    if (run.model.input == InputKind::text)
      return flops_of_text(architecture, static_cast<std::int64_t>(run.tokens.size()), run.schedule);
    return flops_of_image(architecture, run.rows * architecture.patch_height,
                          run.columns * architecture.patch_width, run.schedule);
  } catch (const Error&) {
    return std::nullopt;
  }
}

TimingView timing_view(const RunResult& run, const TimingRecord& times, const std::optional<Flops>& flops) {
  TimingView view;
  view.title = fmt::format("{} · {}", run.model.name, run.schedule.summary());
  view.setting = setting_of(run);
  const std::string subject = timing_subject(run);
  for (std::size_t layer = 0; layer < run.layers.size(); ++layer) {
    const LayerRun& ran = run.layers[layer];
    TimingRow row{.layer = static_cast<int>(layer), .kernel = ran.kernel, .path = ran.path, .time = {}};
    row.time = times.time(subject, row.layer, row.kernel);
    KernelTiming& kernel = entry_of(view.kernels, ran.kernel);
    ++kernel.layers;
    if (row.time.runs > 0) {
      ++kernel.measured;
      kernel.seconds += row.time.median;
      if (flops && layer < flops->layers.size()) {
        kernel.products += flops->layers[layer].blocks();
        kernel.attention += flops->layers[layer].attention;
      }
    }
    view.rows.push_back(std::move(row));
  }
  view.runs = runs_of(view.rows);
  return view;
}

namespace {

BarsPanel medians(const TimingView& view) {
  BarsPanel panel;
  panel.title = "time of each layer";
  panel.x_label = "median of the last runs (ms), tick: p95";
  panel.marks_name = "p95 (ms)";
  for (const TimingRow& row : view.rows) {
    panel.labels.push_back(fmt::format("{}  {}", row.layer, row.kernel.text()));
    panel.values.push_back(milliseconds(row.time, row.time.median));
    panel.marks.push_back(milliseconds(row.time, row.time.p95));
    panel.colours.push_back(kernel_colour(row.kernel.name));
  }
  return panel;
}

BarsPanel differences(const TimingView& a, const TimingView& b) {
  BarsPanel panel;
  panel.title = "time of each layer, A − B";
  panel.x_label = "difference of medians (ms)";
  for (std::size_t i = 0; i < std::min(a.rows.size(), b.rows.size()); ++i) {
    const TimingRow &left = a.rows[i], &right = b.rows[i];
    panel.labels.push_back(fmt::format("{}  {} − {}", left.layer, left.kernel.text(), right.kernel.text()));
    panel.values.push_back(milliseconds(left.time, left.time.median) -
                           milliseconds(right.time, right.time.median));
    panel.colours.push_back(kernel_colour(left.kernel.name));
  }
  return panel;
}

Figure headed(const TimingView& a, const TimingView& b) {
  Figure figure;
  figure.title = fmt::format("A: {}; B: {}", a.title, b.title);
  figure.subtitle = fmt::format("{}; A {}, B {}", a.setting, a.runs, b.runs);
  return figure;
}

} // namespace

Figure timing_figure(const TimingView& view) {
  Figure figure;
  figure.title = view.title;
  figure.subtitle = fmt::format("{}; {}", view.setting, view.runs);
  figure.panels.emplace_back(medians(view));
  return figure;
}

Figure timing_difference_figure(const TimingView& a, const TimingView& b) {
  Figure figure = headed(a, b);
  figure.panels.emplace_back(differences(a, b));
  return figure;
}

Figure timing_sides_figure(const TimingView& a, const TimingView& b) {
  Figure figure = headed(a, b);
  BarsPanel left = medians(a), right = medians(b), difference = differences(a, b);
  left.title = "A";
  right.title = "B";
  difference.title = "A − B";
  for (BarsPanel* const panel : {&left, &right, &difference}) figure.panels.emplace_back(std::move(*panel));
  return figure;
}

} // namespace hydrascope::app
