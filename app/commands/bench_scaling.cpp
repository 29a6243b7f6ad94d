// hydrascope bench scaling and heads: time and memory of attention alone against the number of tokens, and
// over all numbers of heads of a model's width.
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/bench_attention.h"
#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "engine/base/json_text.h"
#include "engine/measure/kernel_support.h"
#include "engine/measure/machine.h"
#include "engine/run/run.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;

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
    entries.push_back(scaling_entry(one.point, one.setting));
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

void add_bench_scaling(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "scaling", "time and memory of each kernel as the number of tokens grows; what is left out, and why");
  const auto options = std::make_shared<CurveOptions>();
  command->add_option("--kernels", options->kernels, "a comma list (default: all)");
  command->add_option("-N,--tokens", options->tokens, "a comma list (default: 64, 128, … 32768)")
      ->delimiter(',')
      ->check(positive_number());
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
      ->check(positive_number())
      ->capture_default_str();
  command->add_option("--width", options->width, "model width D")
      ->check(positive_number())
      ->capture_default_str();
  add_curve_options(*command, *options);
  command->callback([options] { run_heads(*options); });
}

} // namespace hydrascope::app
