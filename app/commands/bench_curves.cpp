// hydrascope bench scaling and bench heads: time and memory of attention alone as the number of tokens grows,
// and over all numbers of heads that a model's width can be cut into.
#include <algorithm>
#include <functional>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/bench_options.h"
#include "app/commands/command.h"
#include "app/commands/progress_bar.h"
#include "app/commands/table.h"
#include "engine/measure/scaling.h"
#include "engine/run/execution.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;

struct CurveOptions {
  std::string kernels; // a comma list
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

// A line for each key, a column for each place along the curve; what has no number says why below.
void print_points(const std::vector<CurvePoint>& points, const std::string& corner,
                  const std::function<std::string(const CurvePoint&)>& row_of,
                  const std::function<std::string(const CurvePoint&)>& column_of,
                  const std::function<std::string(const ScalingPoint&)>& value_of) {
  std::vector<std::vector<std::string>> lines = {{corner}};
  for (const CurvePoint& one : points) {
    if (std::ranges::find(lines.front(), column_of(one)) == lines.front().end())
      lines.front().push_back(column_of(one));
    if (lines.size() == 1 || lines.back().front() != row_of(one)) lines.push_back({row_of(one)});
    lines.back().push_back(one.point.skipped.empty() ? value_of(one.point) : "—");
  }
  print_table(lines, "l" + std::string(lines.front().size() - 1, 'r'));
}

std::string milliseconds(const ScalingPoint& point) { return fmt::format("{:.3g}", 1e3 * point.time.median); }
std::string megabytes(const ScalingPoint& point) {
  return fmt::format("{:.1f}", 1e-6 * static_cast<double>(point.peak_bytes));
}

void print_skipped(const std::vector<CurvePoint>& points,
                   const std::function<std::string(const CurvePoint&)>& place_of) {
  for (const CurvePoint& one : points)
    if (!one.point.skipped.empty())
      fmt::print("{} at {}: {}\n", one.point.kernel.text(), place_of(one), one.point.skipped);
}

void print_json(const std::vector<CurvePoint>& points) {
  ordered_json entries = ordered_json::array();
  for (const CurvePoint& one : points) {
    entries.push_back(entry_of(one.point, one.setting));
    if (one.point.skipped.empty()) entries.back()["peak_bytes"] = one.point.peak_bytes;
  }
  std::cout << entries.dump(2) << '\n';
}

ScalingLimits limits_of(const CurveOptions& options) {
  return {.run_seconds = 5, .point_seconds = options.point_seconds};
}

void run_scaling(CurveOptions options) {
  if (options.tokens.empty()) {
    options.tokens = scaling_lengths();
    options.tokens.push_back(2 * options.tokens.back());
  }
  std::ranges::sort(options.tokens); // what a short one takes tells whether a long one can be afforded
  const std::vector<KernelSpec> kernels = kernels_or_all(options.kernels);
  const ThreadCount threads(options.setting.threads);
  std::vector<CurvePoint> points;
  {
    ProgressBar bar("bench scaling");
    const auto total = static_cast<std::int64_t>(kernels.size() * options.tokens.size());
    for (const KernelSpec& kernel : kernels) {
      ScalingMeasurer measurer(kernel, options.setting, limits_of(options));
      for (const std::int64_t tokens : options.tokens) {
        points.push_back({options.setting, measurer.measure(tokens)});
        bar.show(static_cast<std::int64_t>(points.size()), total);
      }
    }
  }
  if (options.json) return print_json(points);
  const auto kernel = [](const CurvePoint& one) { return one.point.kernel.text(); };
  const auto place = [](const CurvePoint& one) { return fmt::format("N = {}", one.point.tokens); };
  fmt::print("{} heads of {}, {}, batch 1; {}\nmilliseconds, median\n", options.setting.heads,
             options.setting.head_width, options.setting.dtype, place_text(options.setting.device));
  print_points(points, "kernel", kernel, place, milliseconds);
  fmt::print("megabytes beyond q, k and v: the output and what is needed meanwhile\n");
  print_points(points, "kernel", kernel, place, megabytes);
  print_skipped(points, place);
}

void run_heads(const CurveOptions& options) {
  std::vector<int> counts;
  for (int heads = 1; heads <= options.width; ++heads)
    if (options.width % heads == 0) counts.push_back(heads);
  const std::vector<KernelSpec> kernels = kernels_or_all(options.kernels);
  const ThreadCount threads(options.setting.threads);
  std::vector<CurvePoint> points;
  {
    ProgressBar bar("bench heads");
    const auto total = static_cast<std::int64_t>(kernels.size() * counts.size());
    for (const int heads : counts)
      for (const KernelSpec& kernel : kernels) {
        ScalingSetting setting = options.setting;
        setting.heads = heads;
        setting.head_width = options.width / heads;
        points.push_back(
            {setting, ScalingMeasurer(kernel, setting, limits_of(options)).measure(options.tokens.front())});
        bar.show(static_cast<std::int64_t>(points.size()), total);
      }
  }
  if (options.json) return print_json(points);
  const auto place = [](const CurvePoint& one) { return fmt::format("H = {}", one.setting.heads); };
  const auto kernel = [](const CurvePoint& one) { return one.point.kernel.text(); };
  fmt::print("D = {}, N = {}, {}, batch 1; {}\nmilliseconds, median\n", options.width, options.tokens.front(),
             options.setting.dtype, place_text(options.setting.device));
  print_points(points, "heads", place, kernel, milliseconds);
  fmt::print("megabytes beyond q, k and v: the output and what is needed meanwhile\n");
  print_points(points, "heads", place, kernel, megabytes);
  print_skipped(points, place);
}

void add_shared(CLI::App& command, CurveOptions& options) {
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
      ->check(CLI::PositiveNumber);
  add_head_options(*command, options->setting);
  add_shared(*command, *options);
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
  add_shared(*command, *options);
  command->callback([options] { run_heads(*options); });
}

} // namespace hydrascope::app
