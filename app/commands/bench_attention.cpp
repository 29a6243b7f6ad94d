// hydrascope bench kernels, scaling and heads: time and memory of attention alone, beside what the machine
// can do at most, against the number of tokens, and over all numbers of heads of a model's width.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/output.h"
#include "app/views/timing_view.h"
#include "engine/attention/simd/processor.h"
#include "engine/base/device_error.h"
#include "engine/base/json_text.h"
#include "engine/measure/kernel_support.h"
#include "engine/measure/machine.h"
#include "engine/measure/scaling.h"
#include "engine/run/run.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;

// ---- Shared ----

// --heads and --head-width.
void add_head_options(CLI::App& command, ScalingSetting& setting) {
  command.add_option("--heads", setting.heads, "heads H")->check(CLI::PositiveNumber)->capture_default_str();
  command.add_option("--head-width", setting.head_width, "features d of a head")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

// Calls `measure`, which adds to `points`, then `print`. Where the device does no further work, prints what
// was measured before, and throws.
template <typename Points, typename Measure, typename Print>
void measure_and_print(const Points& points, const Measure& measure, const Print& print) {
  try {
    measure();
  } catch (const BrokenDevice&) {
    if (!points.empty()) print();
    throw;
  }
  print();
}

// --device, --threads, --seconds (of each case) and --json.
void add_run_options(CLI::App& command, ScalingSetting& setting, double& seconds, bool& json) {
  command.add_option("--device", setting.device, "cpu, cuda or cuda:i")->capture_default_str();
  command.add_option("--threads", setting.threads, "threads (default: all)")->check(CLI::PositiveNumber);
  command
      .add_option("--seconds", seconds,
                  "how long each case is repeated, after a warm-up of as long, at most 0.2")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--json", json, "one JSON document on standard output");
}

// Each value once, where it comes first: what is named twice is measured once.
template <typename Value>
std::vector<Value> distinct(const std::vector<Value>& values) {
  std::vector<Value> kept;
  for (const Value& value : values)
    if (std::ranges::find(kept, value) == kept.end()) kept.push_back(value);
  return kept;
}

// Ascending: the time of a short one predicts that of a long one.
std::vector<std::int64_t> ordered_lengths(const std::vector<std::int64_t>& tokens) {
  std::vector<std::int64_t> lengths = distinct(tokens);
  std::ranges::sort(lengths);
  return lengths;
}

// The kernels of a comma list, all of the registry for an empty one. Throws UsageError.
std::vector<KernelSpec> kernels_or_all(const std::string& list) {
  if (!list.empty()) return distinct(parse_kernel_list(list));
  std::vector<KernelSpec> kernels;
  for (const KernelInfo& info : kernel_infos()) kernels.push_back({info.name, {}});
  return kernels;
}

// The case, and its time or why it was skipped.
ordered_json entry_of(const ScalingPoint& point, const ScalingSetting& setting) {
  ordered_json entry = {
      {"kernel", point.kernel.text()}, {"N", point.tokens},      {"H", setting.heads},
      {"d", setting.head_width},       {"dtype", setting.dtype}, {"device", setting.device}};
  if (!point.skipped.empty()) {
    entry["skipped"] = point.skipped;
    return entry;
  }
  entry["path"] = point.path;
  entry["runs"] = point.time.runs;
  entry["median_ms"] = 1e3 * point.time.median;
  entry["p95_ms"] = 1e3 * point.time.p95;
  return entry;
}

ScalingLimits limits_of(double point_seconds) {
  return {.run_seconds = 5,
          .warm_up_seconds = std::min(ScalingLimits{}.warm_up_seconds, point_seconds),
          .point_seconds = point_seconds};
}

// ---- kernels ----

struct KernelBenchOptions {
  std::string kernels;             // empty: all
  std::vector<std::string> dtypes; // empty: usual_dtypes()
  std::vector<std::int64_t> tokens;
  ScalingSetting setting{.heads = 12, .head_width = 64};
  double point_seconds = 0.4;
  bool json = false;
};

struct BenchCase {
  KernelSpec kernel;
  std::string dtype;
  std::vector<std::int64_t> tokens; // ascending
};

// The lengths of all kernels, and for some longer ones, where they are at their best.
std::vector<std::int64_t> default_lengths(const KernelSpec& kernel) {
  std::vector<std::int64_t> lengths = {197, 577, 1024, 4096, 16384};
  if (kernel.name == "hedgehog" || kernel.name == "sdpa") lengths.push_back(32768);
  if (kernel.name == "hydra-cosine") lengths.push_back(65536);
  return lengths;
}

// float32 and, where the processor has products of such numbers, bfloat16.
std::vector<std::string> usual_dtypes(const std::string& device) {
  if (device == "cpu" && cpu::has_bfloat16_products(cpu::best_processor(true)))
    return {"float32", "bfloat16"};
  return {"float32"};
}

std::vector<BenchCase> cases_of(const KernelBenchOptions& options) {
  const std::vector<KernelSpec> kernels = kernels_or_all(options.kernels);
  std::vector<BenchCase> cases;
  const std::vector<std::string> dtypes =
      options.dtypes.empty() ? usual_dtypes(options.setting.device) : distinct(options.dtypes);
  for (const std::string& dtype : dtypes)
    for (const KernelSpec& kernel : kernels)
      cases.push_back({kernel, dtype,
                       ordered_lengths(options.tokens.empty() ? default_lengths(kernel) : options.tokens)});
  return cases;
}

// The machine's limits, each measured once for all cases of its size.
class Limits {
public:
  explicit Limits(std::string device) : device_(std::move(device)) {}

  double bandwidth(double bytes) {
    return cached(bandwidths_, static_cast<std::int64_t>(bytes),
                  [&](std::int64_t size) { return triad_bandwidth(size, device_); });
  }
  double reading(double bytes) {
    return cached(readings_, static_cast<std::int64_t>(bytes),
                  [&](std::int64_t size) { return read_bandwidth(size, device_); });
  }
  double rate(const std::string& dtype) {
    return cached(rates_, dtype, [&](const std::string& type) { return matrix_rate(type, device_); });
  }

private:
  template <typename Key, typename Measure>
  static double cached(std::map<Key, double>& known, const Key& key, const Measure& measure) {
    const auto found = known.find(key);
    return found != known.end() ? found->second : known.emplace(key, measure(key)).first->second;
  }

  std::string device_;
  std::map<std::int64_t, double> bandwidths_, readings_;
  std::map<std::string, double> rates_;
};

// The entry with rates, and their shares of the machine's limits.
ordered_json entry_with_limits(const ScalingPoint& point, const ScalingSetting& setting, Limits& limits) {
  ordered_json entry = entry_of(point, setting);
  if (!point.skipped.empty()) return entry;
  const double bytes_per_second = point.bytes / point.time.median;
  const double flops_per_second = 2 * point.products / point.time.median;
  const double bandwidth = limits.bandwidth(point.bytes), rate = limits.rate(setting.dtype);
  entry["bytes_per_second"] = bytes_per_second;
  entry["share_of_bandwidth"] = bytes_per_second / bandwidth;
  entry["flops_per_second"] = flops_per_second;
  entry["share_of_flops"] = flops_per_second / rate;
  entry["peak_bytes"] = point.peak_bytes;
  entry["triad_bytes_per_second"] = bandwidth;
  entry["read_bytes_per_second"] = limits.reading(point.bytes);
  entry["matrix_flops_per_second"] = rate;
  entry["device_state"] = text_of(device_state(setting.device)); // right after the runs
  return entry;
}

void print_kernel_entries(const ordered_json& entries) {
  std::vector<std::vector<std::string>> rows = {{"kernel", "dtype", "N", "median ms", "p95 ms", "GB/s",
                                                 "of triad", "GFLOP/s", "of products", "peak MB", "path"}};
  for (const ordered_json& entry : entries) {
    std::vector<std::string> row = {entry["kernel"], entry["dtype"],
                                    std::to_string(entry["N"].get<std::int64_t>())};
    if (entry.contains("skipped")) {
      row.insert(row.end(), {"—", "—", "—", "—", "—", "—", "—", entry["skipped"]});
    } else {
      const auto number = [&](const char* key, double scale, int digits) {
        return fmt::format("{:.{}f}", scale * entry[key].get<double>(), digits);
      };
      row.insert(row.end(), {number("median_ms", 1, 3), number("p95_ms", 1, 3),
                             number("bytes_per_second", 1e-9, 1), number("share_of_bandwidth", 100, 0) + " %",
                             number("flops_per_second", 1e-9, 1), number("share_of_flops", 100, 0) + " %",
                             number("peak_bytes", 1e-6, 1), path_text(entry["path"])});
    }
    rows.push_back(std::move(row));
  }
  print_table(rows, "llrrrrrrrrl");
}

void run(const KernelBenchOptions& options) {
  const std::vector<BenchCase> cases = cases_of(options);
  const ThreadCount threads(options.setting.threads);
  Limits limits(options.setting.device);
  ordered_json entries = ordered_json::array();
  const auto measure = [&] {
    ProgressBar bar("bench kernels");
    std::int64_t done = 0, total = 0;
    for (const BenchCase& one : cases) total += static_cast<std::int64_t>(one.tokens.size());
    for (const BenchCase& one : cases) {
      ScalingSetting setting = options.setting;
      setting.dtype = one.dtype;
      ScalingMeasurer measurer(one.kernel, setting, limits_of(options.point_seconds));
      for (const std::int64_t tokens : one.tokens) {
        entries.push_back(entry_with_limits(measurer.measure(tokens), setting, limits));
        bar.show(++done, total);
      }
    }
  };
  measure_and_print(entries, measure, [&] {
    if (options.json) {
      std::cout << text_of_json(entries, 2) << '\n';
      return;
    }
    fmt::print("{} heads of {}, batch 1; {}\n", options.setting.heads, options.setting.head_width,
               machine_text(options.setting.device));
    print_kernel_entries(entries);
  });
}

// ---- scaling and heads ----

struct CurveOptions {
  std::string kernels; // a comma list
  std::string capture; // whose heads are measured; may be empty
  std::vector<std::int64_t> tokens;
  ScalingSetting setting{.heads = 12, .head_width = 64};
  int width = 768;
  double point_seconds = 0.4;
  bool json = false;
};

struct CurvePoint {
  ScalingSetting setting;
  ScalingPoint point;
};

// The points row by row, each row of so many columns, which the first one's points name; "—" where a point
// was skipped. What names rows and columns need not be unique: of two maps `phi my` only the folders differ.
void print_points(const std::vector<CurvePoint>& points, const std::size_t columns, const std::string& corner,
                  const std::function<std::string(const CurvePoint&)>& row_of,
                  const std::function<std::string(const CurvePoint&)>& column_of,
                  const std::function<std::string(const ScalingPoint&)>& value_of) {
  std::vector<std::vector<std::string>> lines = {{corner}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i < columns) lines.front().push_back(column_of(points[i]));
    if (i % columns == 0) lines.push_back({row_of(points[i])});
    lines.back().push_back(points[i].point.skipped.empty() ? value_of(points[i].point) : "—");
  }
  print_table(lines, "l" + std::string(columns, 'r'));
}

constexpr const char* megabytes_title =
    "megabytes beyond q, k and v: the output and what is needed meanwhile";

std::string milliseconds(const ScalingPoint& point) { return fmt::format("{:.3g}", 1e3 * point.time.median); }
std::string megabytes(const ScalingPoint& point) {
  return fmt::format("{:.1f}", 1e-6 * static_cast<double>(point.peak_bytes));
}

void print_skipped(const std::vector<CurvePoint>& points,
                   const std::function<std::string(const CurvePoint&)>& place_of) {
  for (const CurvePoint& one : points)
    if (!one.point.skipped.empty())
      fmt::print("{} at {}: {}\n", one.point.kernel.label(), place_of(one), one.point.skipped);
}

void print_json(const std::vector<CurvePoint>& points) {
  ordered_json entries = ordered_json::array();
  for (const CurvePoint& one : points) {
    entries.push_back(entry_of(one.point, one.setting));
    if (one.point.skipped.empty()) entries.back()["peak_bytes"] = one.point.peak_bytes;
  }
  std::cout << text_of_json(entries, 2) << '\n';
}

void print_scaling(const CurveOptions& options, const std::vector<CurvePoint>& points) {
  if (options.json) return print_json(points);
  const auto kernel = [](const CurvePoint& one) { return one.point.kernel.label(); };
  const auto place = [](const CurvePoint& one) { return fmt::format("N = {}", one.point.tokens); };
  fmt::print("{} heads of {}, {}, batch 1; {}\nmilliseconds, median\n", options.setting.heads,
             options.setting.head_width, options.setting.dtype, machine_text(options.setting.device));
  print_points(points, options.tokens.size(), "kernel", kernel, place, milliseconds);
  fmt::print("{}\n", megabytes_title);
  print_points(points, options.tokens.size(), "kernel", kernel, place, megabytes);
  print_skipped(points, place);
}

void run_scaling(CurveOptions options) {
  if (!options.capture.empty()) {
    CommonOptions common;
    common.capture = options.capture;
    set_heads_of(read_model_info(model_folder(common, InputKind::text)), options.setting);
  }
  options.tokens = ordered_lengths(options.tokens.empty() ? scaling_lengths() : options.tokens);
  const std::vector<KernelSpec> kernels = kernels_or_all(options.kernels);
  const ThreadCount threads(options.setting.threads);
  std::vector<CurvePoint> points;
  const auto measure = [&] {
    ProgressBar bar("bench scaling");
    const auto total = static_cast<std::int64_t>(kernels.size() * options.tokens.size());
    for (const KernelSpec& kernel : kernels) {
      ScalingMeasurer measurer(kernel, options.setting, limits_of(options.point_seconds));
      for (const std::int64_t tokens : options.tokens) {
        points.push_back({options.setting, measurer.measure(tokens)});
        bar.show(static_cast<std::int64_t>(points.size()), total);
      }
    }
  };
  measure_and_print(points, measure, [&] { print_scaling(options, points); });
}

void print_heads(const CurveOptions& options, const std::vector<CurvePoint>& points,
                 const std::size_t kernels) {
  if (options.json) return print_json(points);
  const auto place = [](const CurvePoint& one) { return fmt::format("H = {}", one.setting.heads); };
  const auto kernel = [](const CurvePoint& one) { return one.point.kernel.label(); };
  fmt::print("D = {}, N = {}, {}, batch 1; {}\nmilliseconds, median\n", options.width, options.tokens.front(),
             options.setting.dtype, machine_text(options.setting.device));
  print_points(points, kernels, "heads", place, kernel, milliseconds);
  fmt::print("{}\n", megabytes_title);
  print_points(points, kernels, "heads", place, kernel, megabytes);
  print_skipped(points, place);
}

void run_heads(const CurveOptions& options) {
  const std::vector<std::int64_t> counts = divisors_of(options.width);
  const std::vector<KernelSpec> kernels = kernels_or_all(options.kernels);
  const ThreadCount threads(options.setting.threads);
  std::vector<CurvePoint> points;
  const auto measure = [&] {
    ProgressBar bar("bench heads");
    const auto total = static_cast<std::int64_t>(kernels.size() * counts.size());
    for (const std::int64_t heads : counts)
      for (const KernelSpec& kernel : kernels) {
        ScalingSetting setting = options.setting;
        setting.heads = static_cast<int>(heads);
        setting.head_width = options.width / setting.heads;
        ScalingMeasurer measurer(kernel, setting, limits_of(options.point_seconds));
        points.push_back({setting, measurer.measure(options.tokens.front())});
        bar.show(static_cast<std::int64_t>(points.size()), total);
      }
  };
  measure_and_print(points, measure, [&] { print_heads(options, points, kernels.size()); });
}

void add_curve_options(CLI::App& command, CurveOptions& options) {
  command.add_option("--dtype", options.setting.dtype, "float32, bfloat16, on a GPU float16")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->capture_default_str();
  add_run_options(command, options.setting, options.point_seconds, options.json);
}

} // namespace

void add_bench_kernels(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "kernels",
      "time, memory, bytes and operations a second of each kernel beside the machine's own limits");
  const auto options = std::make_shared<KernelBenchOptions>();
  command->add_option("--kernels", options->kernels, "a comma list (default: all)");
  command
      ->add_option("-N,--tokens", options->tokens, "a comma list (default: 197 to 16384, some kernels more)")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  add_head_options(*command, options->setting);
  command
      ->add_option("--dtype", options->dtypes,
                   "of float32, bfloat16 and, on a GPU, float16 (default: float32, and bfloat16 where the "
                   "processor has products of it)")
      ->delimiter(',')
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  add_run_options(*command, options->setting, options->point_seconds, options->json);
  command->callback([options] { run(*options); });
}

void add_bench_scaling(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "scaling", "time and memory of each kernel as the number of tokens grows; what is left out, and why");
  const auto options = std::make_shared<CurveOptions>();
  command->add_option("--kernels", options->kernels, "a comma list (default: all)");
  command->add_option("-N,--tokens", options->tokens, "a comma list (default: 64, 128, … 32768)")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  add_head_options(*command, options->setting);
  command
      ->add_option("--capture", options->capture,
                   "recorded attention (FILE or FILE:PART) whose heads, d and grid of patches are measured")
      ->excludes(command->get_option("--heads"))
      ->excludes(command->get_option("--head-width"));
  add_curve_options(*command, *options);
  command->callback([options] { run_scaling(*options); });
}

void add_bench_heads(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "heads",
      "time and memory over all numbers of heads that a width can be cut into (Hydra paper, Fig. 2)");
  const auto options = std::make_shared<CurveOptions>();
  options->kernels = "softmax,linear-cosine";
  options->tokens = {197};
  command->add_option("--kernels", options->kernels, "a comma list")->capture_default_str();
  command->add_option("-N,--tokens", options->tokens.front(), "tokens N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--width", options->width, "model width D")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_curve_options(*command, *options);
  command->callback([options] { run_heads(*options); });
}

} // namespace hydrascope::app
