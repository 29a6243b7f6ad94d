// hydrascope bench kernels: time and memory of attention alone, beside what the machine can do at most.
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/bench_attention.h"
#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "app/views/timing_view.h"
#include "engine/attention/simd/processor.h"
#include "engine/base/json_text.h"
#include "engine/measure/machine.h"
#include "engine/run/run.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;

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
  ordered_json entry = scaling_entry(point, setting);
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

void run_kernels(const KernelBenchOptions& options) {
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
      ->check(positive_number());
  add_head_options(*command, options->setting);
  command
      ->add_option("--dtype", options->dtypes,
                   "of float32, bfloat16 and, on a GPU, float16 (default: float32, and bfloat16 where the "
                   "processor has products of it)")
      ->delimiter(',')
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  add_run_options(*command, options->setting, options->point_seconds, options->json);
  command->callback([options] { run_kernels(*options); });
}

} // namespace hydrascope::app
