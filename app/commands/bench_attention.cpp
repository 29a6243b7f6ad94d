#include "app/commands/bench_attention.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "engine/run/run.h"

namespace hydrascope::app {

void add_head_options(CLI::App& command, ScalingSetting& setting) {
  command.add_option("--heads", setting.heads, "heads H")->check(positive_number())->capture_default_str();
  command.add_option("--head-width", setting.head_width, "features d of a head")
      ->check(number_within(1, most_head_width))
      ->capture_default_str();
}

void add_run_options(CLI::App& command, ScalingSetting& setting, double& seconds, bool& json) {
  command.add_option("--device", setting.device, "cpu, cuda or cuda:i")->capture_default_str();
  command.add_option("--threads", setting.threads, "threads (default: all)")->check(thread_count());
  command
      .add_option("--seconds", seconds,
                  "how long each case is repeated, after a warm-up of as long, at most 0.2")
      ->check(positive_number())
      ->capture_default_str();
  command.add_flag("--json", json, "one JSON document on standard output");
}

std::vector<std::int64_t> ordered_lengths(const std::vector<std::int64_t>& tokens) {
  std::vector<std::int64_t> lengths = distinct(tokens);
  std::ranges::sort(lengths);
  return lengths;
}

std::vector<KernelSpec> kernels_or_all(const std::string& list) {
  if (!list.empty()) return distinct(parse_kernel_list(list));
  std::vector<KernelSpec> kernels;
  for (const KernelInfo& info : kernel_infos()) kernels.push_back({info.name, {}});
  return kernels;
}

nlohmann::ordered_json scaling_entry(const ScalingPoint& point, const ScalingSetting& setting) {
  nlohmann::ordered_json entry = {
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

} // namespace hydrascope::app
