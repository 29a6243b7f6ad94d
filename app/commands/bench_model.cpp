// hydrascope bench model: pictures or texts a second of a whole model under several schedules, beside what
// the model could reach without attention.
#include <algorithm>
#include <iostream>
#include <map>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "app/views/timing_view.h"
#include "engine/base/json_text.h"
#include "engine/measure/machine.h"
#include "engine/measure/throughput.h"
#include "engine/run/run.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;
using Kind = ThroughputRow::Kind;

struct ModelBenchOptions {
  std::string model = "vit-small";
  std::vector<std::string> schedules = {"softmax", "sdpa", "flash", "back:2=hydra-cosine", "hydra-cosine"};
  ThroughputRequest request;
  int image_size = 0;
  bool json = false;
};

// "hydra-cosine" for all layers, or "back:2=hydra-cosine" for some, the rest softmax.
ScheduleText schedule_of(const std::string& text) {
  for (const char* strategy : {"front:", "back:", "interleave:"})
    if (text.starts_with(strategy)) return {.replace = {text}};
  return {.kernel = text};
}

// What the rows of one batch size are compared with.
struct Reference {
  double softmax = 0, bound = 0; // items a second; 0: not measured
};

std::map<int, Reference> references(const std::vector<ThroughputRow>& rows) {
  std::map<int, Reference> all;
  for (const ThroughputRow& row : rows) {
    Reference& reference = all[row.batch];
    if (row.kind == Kind::without_attention) reference.bound = row.items_per_second;
    if (row.kind == Kind::schedule && row.schedule == "softmax") reference.softmax = row.items_per_second;
  }
  return all;
}

ordered_json entry_of(const ThroughputRow& row, const Reference& reference,
                      const ExecutionOptions& execution) {
  const char* const kinds[] = {"schedule", "untapped", "without attention", "products"};
  ordered_json entry = {{"kind", kinds[static_cast<int>(row.kind)]},
                        {"schedule", row.schedule},
                        {"batch", row.batch},
                        {"N", row.tokens},
                        {"dtype", execution.dtype},
                        {"device", execution.device},
                        {"items_per_second", row.items_per_second},
                        {"runs", row.time.runs},
                        {"median_ms", 1e3 * row.time.median},
                        {"p95_ms", 1e3 * row.time.p95}};
  if (reference.softmax > 0) entry["times_softmax"] = row.items_per_second / reference.softmax;
  if (row.kind != Kind::schedule) return entry;
  if (reference.bound > 0) entry["share_of_bound"] = row.items_per_second / reference.bound;
  entry["path"] = row.paths;
  return entry;
}

void print_model_entries(const ordered_json& entries) {
  std::vector<std::vector<std::string>> lines = {
      {"schedule", "batch", "N", "items/s", "median ms", "p95 ms", "× softmax", "of bound", "attention"}};
  for (const ordered_json& entry : entries) {
    const auto number = [&](const char* key, const char* format, double scale = 1) {
      return entry.contains(key) ? fmt::format(fmt::runtime(format), scale * entry[key].get<double>())
                                 : std::string("—");
    };
    lines.push_back({entry["schedule"], std::to_string(entry["batch"].get<int>()),
                     std::to_string(entry["N"].get<std::int64_t>()), number("items_per_second", "{:.2f}"),
                     number("median_ms", "{:.1f}"), number("p95_ms", "{:.1f}"),
                     number("times_softmax", "{:.3f}"), number("share_of_bound", "{:.1f} %", 100),
                     path_text(entry.value("path", "—"))});
  }
  print_table(lines, "lrrrrrrrl");
}

void run(const ModelBenchOptions& options) {
  ThroughputRequest request = options.request;
  request.model_folder = resolve_model(options.model);
  if (options.image_size > 0) request.execution.image_size = options.image_size;
  for (const std::string& text : options.schedules) request.schedules.push_back(schedule_of(text));
  std::vector<ThroughputRow> rows;
  {
    ProgressBar bar("bench model");
    rows = measure_throughput(request, [&](std::int64_t done, std::int64_t total) { bar.show(done, total); });
  }
  const std::map<int, Reference> compared = references(rows);
  ordered_json entries = ordered_json::array();
  for (const ThroughputRow& row : rows)
    entries.push_back(entry_of(row, compared.at(row.batch), request.execution));
  if (options.json) {
    std::cout << text_of_json(entries, 2) << '\n';
    return;
  }
  const ThreadCount threads(request.execution.threads);
  fmt::print("{}, {}, {}; {} batches of each after {} that warm up\n", options.model, request.execution.dtype,
             machine_text(request.execution.device), request.runs, request.warm_ups);
  print_model_entries(entries);
}

} // namespace

void add_bench_model(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "model",
      "pictures or texts a second of a model under several schedules, taking turns, beside its bounds: no "
      "attention, and the blocks' matrix products alone");
  const auto options = std::make_shared<ModelBenchOptions>();
  ThroughputRequest& request = options->request;
  command
      ->add_option("--model", options->model,
                   "catalogue name, Hugging Face folder, or repository name in the Hugging Face cache")
      ->capture_default_str();
  command
      ->add_option(
          "--schedule", options->schedules,
          "a kernel for all layers, or front:k=KERNEL, back:k=KERNEL, interleave:k=KERNEL (repeatable)")
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--batch", request.batches, "a comma list")
      ->delimiter(',')
      ->check(positive_number())
      ->capture_default_str();
  command
      ->add_option("--image-size", options->image_size, "side of the square picture (default: the model's)")
      ->check(positive_number());
  command->add_option("-N,--tokens", request.tokens, "length of a text")
      ->check(number_within(3, 1'000'000))
      ->capture_default_str();
  request.execution.device = "cpu";
  command->add_option("--device", request.execution.device, "cpu, cuda or cuda:i")->capture_default_str();
  command->add_option("--dtype", request.execution.dtype, "float32, bfloat16 or, on a GPU, float16")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->capture_default_str();
  command->add_option("--threads", request.execution.threads, "threads (default: all)")
      ->check(thread_count());
  command->add_option("--runs", request.runs, "batches that are timed")
      ->check(positive_number())
      ->capture_default_str();
  command->add_option("--warm-ups", request.warm_ups, "batches before them")
      ->check(non_negative_number())
      ->capture_default_str();
  command->add_flag("--schedules-only", request.schedules_only, "no untapped run and no bounds");
  command->add_flag("--json", options->json, "one JSON document on standard output");
  command->callback([options] { run(*options); });
}

} // namespace hydrascope::app
