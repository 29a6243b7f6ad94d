// hydrascope attend: the bare attention operation on tensors in a safetensors file.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/views/timing_view.h"
#include "app/views/weights_check.h"
#include "engine/attention/interface/attend.h"
#include "engine/attention/interface/parameters.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/base/text.h"

namespace hydrascope::app {
namespace {

struct AttendOptions {
  std::string kernel;
  AttendRequest request;
  std::string rows;
  std::string grid;
  bool json = false;
};

std::vector<std::int64_t> parse_rows(const std::string& text) {
  std::vector<std::int64_t> rows;
  for (const std::string_view part : split(text, ',')) {
    const std::optional<int> row = whole_number(trimmed(part));
    if (!row)
      throw UsageError("--rows", fmt::format("\"{}\" is not a query row", trimmed(part)),
                       "write them as in 0,5,12");
    rows.push_back(*row);
  }
  return rows;
}

void parse_grid(const std::string& text, AttendRequest& request) {
  const std::vector<std::string_view> sides = split(text, 'x');
  std::vector<int> numbers;
  for (const std::string_view side : sides) numbers.push_back(whole_number(trimmed(side)).value_or(0));
  if (numbers.size() != 2 || numbers[0] == 0 || numbers[1] == 0)
    throw UsageError("--grid", fmt::format("\"{}\" is not a grid", text),
                     "write rows x columns, as in 14x14");
  request.grid_rows = numbers[0];
  request.grid_columns = numbers[1];
}

void run(AttendOptions options) {
  options.request.kernel = parse_kernel_spec(options.kernel, "attend");
  if (!options.rows.empty()) {
    if (!options.request.weights) throw UsageError("--rows", "no weights are asked for", "add --weights");
    options.request.rows = parse_rows(options.rows);
  }
  if (!options.grid.empty()) parse_grid(options.grid, options.request);
  const AttendReport report = attend_file(options.request);
  const KernelInfo& info = kernel_info(options.request.kernel);
  if (options.json) {
    nlohmann::ordered_json document{{"kernel", options.request.kernel.text()},
                                    {"path", report.path},
                                    {"dtype", options.request.dtype},
                                    {"seconds", report.seconds},
                                    {"zero_denominators", report.zero_denominators}};
    if (report.check) {
      document["check"] = *report.check;
      document["checked_rows"] = report.checked_rows;
      document["checked"] = checked_text(info);
      if (info.implied_weights) document["weights"] = implied_weights_text(info);
    }
    fmt::print("{}\n", text_of_json(document, 2));
    return;
  }
  fmt::print("{}: {}, {}, {:.3f} s\n", options.request.kernel.label(), path_text(report.path),
             options.request.dtype, report.seconds);
  if (report.check)
    fmt::print("|{} − output| at most {:.2g} over {} rows\n", checked_text(info), *report.check,
               report.checked_rows);
  if (report.check && info.implied_weights) fmt::print("weights: {}\n", implied_weights_text(info));
  if (report.zero_denominators > 0)
    fmt::print("{} rows are zero: their normaliser was 0\n", report.zero_denominators);
}

} // namespace

void add_attend_command(CLI::App& program) {
  CLI::App* const command =
      program.add_subcommand("attend", "run one attention kernel on q, k, v from a safetensors file");
  const auto options = std::make_shared<AttendOptions>();
  command->add_option("kernel", options->kernel, "kernel, as in hedgehog or softmax:heads=4")->required();
  command
      ->add_option("--input", options->request.input,
                   "safetensors: q, k, v float32 (B,H,N,d); optional mask (B,N) uint8, x (B,N,D), the "
                   "kernel's parameters")
      ->required();
  command
      ->add_option(
          "--output", options->request.output,
          "safetensors to write: output (B,H,N,d), with --weights weights (B,H,R,N), and performer's "
          "omega where it was drawn")
      ->required();
  command->add_flag("--weights", options->request.weights, "write the explicit weights, too (up to 4 GiB)");
  command->add_option("--rows", options->rows, "query rows of the weights, as in 0,5 (default: all)");
  command->add_flag("--causal", options->request.causal, "each token attends to itself and those before it");
  command->add_option("--grid", options->grid,
                      "the tokens end in this grid of patches, as in 14x14 (default: text)");
  command->add_option("--device", options->request.device, "auto, cpu, cuda or cuda:i")
      ->capture_default_str();
  command
      ->add_option("--dtype", options->request.dtype,
                   "q, k, v are rounded to it: float32, bfloat16 or float16")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->capture_default_str();
  command->add_flag("--json", options->json, "one JSON document on standard output");
  command->callback([options] { run(*options); });
}

} // namespace hydrascope::app
