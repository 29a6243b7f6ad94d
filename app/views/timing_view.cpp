#include "app/views/timing_view.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/views/selection.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/run/quantities/layer_times.h"

namespace hydrascope::app {

namespace {

constexpr std::size_t most_subjects = 24;

constexpr int least_runs_of_p95 = 3;
constexpr double unmeasured = std::numeric_limits<double>::quiet_NaN();

std::string threads_of(const RunResult& run) {
  return fmt::format("{} {}", run.threads, run.threads == 1 ? "thread" : "threads");
}

std::string setting_of(const RunResult& run) {
  std::vector<std::string> paths;
  for (const LayerRun& layer : run.layers) {
    const std::string path = path_text(layer.path);
    if (!path.empty() && std::ranges::count(paths, path) == 0) paths.push_back(path);
  }
  return fmt::format("{} · {}, peak {}, N = {}",
                     execution_text(run, fmt::format("{}", fmt::join(paths, " and "))), threads_of(run),
                     memory_text(run), run.tokens.size());
}

std::string runs_of(const std::vector<TimingRow>& rows) {
  if (rows.empty()) return "0 runs";
  const auto [least, most] =
      std::ranges::minmax_element(rows, {}, [](const TimingRow& row) { return row.time.runs; });
  if (least->time.runs == most->time.runs) return runs_text(most->time.runs);
  return fmt::format("{}–{} runs", least->time.runs, most->time.runs);
}

KernelTiming& entry_of(std::vector<KernelTiming>& kernels, const KernelSpec& kernel) {
  const auto found = std::ranges::find(kernels, kernel, &KernelTiming::kernel);
  if (found != kernels.end()) return *found;
  kernels.emplace_back().kernel = kernel;
  return kernels.back();
}

double milliseconds(const RepeatedTime& time, double seconds) {
  return time.runs > 0 ? seconds * 1e3 : unmeasured;
}

BarsPanel medians(const TimingView& view) {
  BarsPanel panel;
  panel.title = "time of each layer";
  panel.x_label = "median of the last runs (ms), tick: p95";
  panel.marks_name = "p95 (ms)";
  for (const TimingRow& row : view.rows) {
    panel.labels.push_back(fmt::format("{}  {}", row.layer, row.kernel.label()));
    panel.values.push_back(milliseconds(row.time, row.time.median));
    panel.marks.push_back(row.time.runs < least_runs_of_p95 ? unmeasured : row.time.p95 * 1e3);
    Colour colour = kernel_colour(row.kernel.name);
    if (row.cold) colour.alpha = 0.35f;
    panel.colours.push_back(colour);
  }
  return panel;
}

BarsPanel differences(const TimingView& a, const TimingView& b) {
  BarsPanel panel;
  panel.title = difference_label("time of each layer");
  panel.x_label = "difference of medians (ms)";
  for (std::size_t i = 0; i < std::min(a.rows.size(), b.rows.size()); ++i) {
    const TimingRow &left = a.rows[i], &right = b.rows[i];
    panel.labels.push_back(fmt::format("{}  {} − {}", left.layer, left.kernel.label(), right.kernel.label()));
    // The first run of one side against a later one of the other would be a difference of warming up.
    panel.values.push_back(left.cold || right.cold ? unmeasured
                                                   : milliseconds(left.time, left.time.median) -
                                                         milliseconds(right.time, right.time.median));
    panel.colours.push_back(kernel_colour(left.kernel.name));
  }
  return panel;
}

Figure headed(const TimingView& a, const TimingView& b) {
  Figure figure;
  figure.title = fmt::format("{}: {}; {}: {}", side_name(Side::a), a.title, side_name(Side::b), b.title);
  figure.subtitle = fmt::format("{}; {}", a.setting, runs_of_sides(a, b));
  return figure;
}

} // namespace

std::string path_text(const std::string& path) {
  std::string text;
  for (const std::string_view part : split(path, ',')) {
    std::string_view name = trimmed(part);
    if (name == "composed") name = "reference";
    if (name.starts_with("fused")) name = "fused";
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

std::string execution_text(const std::string& device, const std::string& dtype) {
  std::string text = device;
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text + " · " + dtype;
}

std::string execution_text(const RunResult& run, const std::string& path) {
  const std::string text = execution_text(run.device, run.dtype);
  return path.empty() ? text : text + " · " + path;
}

std::string runs_text(int runs) { return fmt::format("{} {}", runs, runs == 1 ? "run" : "runs"); }

std::string memory_text(const RunResult& run) {
  if (run.device_total_bytes == 0) return fmt::format("{:.0f} MB", static_cast<double>(run.peak_bytes) / 1e6);
  return fmt::format("{} of {}", bytes_text(static_cast<double>(run.device_bytes)),
                     bytes_text(static_cast<double>(run.device_total_bytes)));
}

namespace {

template <class Condition>
std::string layers_where(const TimingView& view, const Condition& condition) {
  std::vector<std::string> ranges;
  std::size_t count = 0;
  for (std::size_t row = 0; row < view.rows.size(); ++row) {
    const std::size_t first = row;
    while (row < view.rows.size() && condition(view.rows[row])) ++row;
    if (row == first) continue;
    count += row - first;
    ranges.push_back(row - first == 1
                         ? std::to_string(view.rows[first].layer)
                         : fmt::format("{}–{}", view.rows[first].layer, view.rows[row - 1].layer));
  }
  if (count == 0) return {};
  return fmt::format("{} {}", count == 1 ? "layer" : "layers", fmt::join(ranges, ", "));
}

} // namespace

std::string untimed_layers(const TimingView& view) {
  return layers_where(view, [](const TimingRow& row) { return row.time.runs == 0; });
}

std::string cold_layers(const TimingView& view) { return layers_where(view, std::mem_fn(&TimingRow::cold)); }

namespace {

std::string subject_of(const RunResult& run, bool masked, bool muted) {
  return fmt::format("{}\n{} {} {} {} {} {}", run.model.folder.string(), run.tokens.size(),
                     masked ? "masked" : "all", muted ? "muted" : "", run.dtype, run.device, run.threads);
}

} // namespace

std::string timing_subject(const RunResult& run) {
  // Hidden word pieces are masked, which costs kernels time; hidden patches are painted over.
  const bool masked = run.model.input == InputKind::text && !run.hidden_tokens.empty();
  return subject_of(run, masked, !run.muted_heads.empty());
}

std::string plain_timing_subject(const RunResult& run) { return subject_of(run, false, false); }

void TimingRecord::add(Layers& layers, int layer, const KernelSpec& kernel, double seconds, bool warm) {
  Samples& samples = layers[{layer, kernel}];
  if (samples.first_is_cold && (warm || !samples.seconds.empty())) {
    samples.seconds.clear();
    samples.first_is_cold = false;
  }
  samples.seconds.push_back(seconds);
  if (samples.seconds.size() > most_runs) samples.seconds.pop_front();
}

void TimingRecord::add(const RunResult& run) {
  const std::string subject = timing_subject(run);
  if (!subjects_.contains(subject)) {
    order_.push_back(subject);
    if (order_.size() > most_subjects) {
      subjects_.erase(order_.front());
      order_.pop_front();
    }
  }
  Layers& layers = subjects_[subject];
  for (std::size_t layer = 0; layer < run.layers.size(); ++layer) {
    const LayerRun& ran = run.layers[layer];
    // What reads a layer of a capture runs the kernel itself, as far as it needs to.
    if (!ran.cached && !ran.differentiable && !run.model.capture)
      add(layers, static_cast<int>(layer), ran.kernel, ran.seconds, false);
    for (const auto& [key, passes] : run.quantities.all<LayerTimesKey>())
      for (const std::vector<double>& pass : *passes)
        add(layers, static_cast<int>(layer), ran.kernel, pass.at(layer), true);
  }
  ++revision_;
}

const TimingRecord::Samples* TimingRecord::find(const std::string& subject, int layer,
                                                const KernelSpec& kernel) const {
  const auto layers = subjects_.find(subject);
  if (layers == subjects_.end()) return nullptr;
  const auto found = layers->second.find({layer, kernel});
  return found == layers->second.end() ? nullptr : &found->second;
}

RepeatedTime TimingRecord::time(const std::string& subject, int layer, const KernelSpec& kernel) const {
  const Samples* samples = find(subject, layer, kernel);
  if (samples == nullptr) return {};
  return repeated_time({samples->seconds.begin(), samples->seconds.end()});
}

bool TimingRecord::is_cold(const std::string& subject, int layer, const KernelSpec& kernel) const {
  const Samples* samples = find(subject, layer, kernel);
  return samples != nullptr && samples->first_is_cold && !samples->seconds.empty();
}

std::optional<Flops> flops_of_run(const RunResult& run) {
  try {
    const Architecture architecture = architecture_of_model(run.model.folder);
    if (run.model.input == InputKind::text)
      return flops_of_text(architecture, static_cast<std::int64_t>(run.tokens.size()), run.schedule);
    return flops_of_image(architecture, run.rows * architecture.patch_height,
                          run.columns * architecture.patch_width, run.schedule);
  } catch (const Error&) {
    return std::nullopt;
  } catch (const std::bad_alloc&) { // while a map of the user's is tried
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
    row.cold = times.is_cold(subject, row.layer, row.kernel);
    if (row.time.runs == 0) { // until it is measured, the row keeps its last time
      row.time = times.time(plain_timing_subject(run), row.layer, row.kernel);
      row.earlier = row.time.runs > 0;
    }
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

std::string runs_of_sides(const TimingView& a, const TimingView& b) {
  return fmt::format("{} {}, {} {}", side_name(Side::a), a.runs, side_name(Side::b), b.runs);
}

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
  left.title = side_name(Side::a);
  right.title = side_name(Side::b);
  difference.title = side_name(Shown::difference);
  for (BarsPanel* const panel : {&left, &right, &difference}) figure.panels.emplace_back(std::move(*panel));
  return figure;
}

} // namespace hydrascope::app
