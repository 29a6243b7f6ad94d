// hydrascope flops: multiply-accumulates by formula, the Hydra paper's tables 2 to 4 for any encoder.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/measure/flops.h"

namespace hydrascope::app {
namespace {

struct FlopsOptions {
  std::optional<std::string> architecture, model;
  std::vector<int> image_sizes, tokens;
  int patch_size = 0;
  ScheduleText schedule;
  std::string kernels;
  bool per_layer = false, json = false;
};

constexpr double giga = 1e9, mega = 1e6;

Architecture chosen_architecture(const FlopsOptions& options) {
  if (options.model) {
    if (options.architecture)
      throw UsageError("--model", "cannot be combined with --architecture", "leave one of them out");
    if (options.patch_size > 0)
      throw UsageError("--patch-size", "a model has its own", "leave it out, or name an --architecture");
    return architecture_of_model(resolve_model(*options.model));
  }
  Architecture chosen = architecture_named(options.architecture.value_or("deit-base"));
  if (options.patch_size == 0) return chosen;
  if (chosen.input == InputKind::text)
    throw UsageError("--patch-size", fmt::format("{} reads text, not pictures", chosen.name), "leave it out");
  chosen.patch_height = chosen.patch_width = options.patch_size;
  return chosen;
}

std::vector<InputSize> chosen_sizes(const FlopsOptions& options, const Architecture& architecture) {
  const bool text = architecture.input == InputKind::text;
  if (text && !options.image_sizes.empty())
    throw UsageError("--image-size", fmt::format("{} reads text, not pictures", architecture.name),
                     "give --tokens");
  if (!text && !options.tokens.empty())
    throw UsageError("--tokens", fmt::format("{} reads pictures, not text", architecture.name),
                     "give --image-size");
  std::vector<InputSize> sizes;
  for (const int side : options.image_sizes) sizes.push_back({.height = side, .width = side});
  for (const int tokens : options.tokens) sizes.push_back({.tokens = tokens});
  return sizes.empty() ? default_sizes(architecture) : sizes;
}

// `scheduled`: whether a schedule was given, be it the default one.
std::vector<ScheduleText> chosen_schedules(const FlopsOptions& options, const Architecture& architecture,
                                           bool scheduled) {
  if (options.kernels.empty())
    return scheduled ? std::vector{options.schedule} : default_schedules(architecture);
  if (scheduled)
    throw UsageError("--kernels", "cannot be combined with --kernel, --replace or --layers",
                     "leave one of them out");
  std::vector<ScheduleText> schedules;
  for (const KernelSpec& kernel : parse_kernel_list(options.kernels))
    schedules.push_back({.kernel = kernel.text()});
  return schedules;
}

std::string written_size(const InputSize& size) {
  if (size.tokens > 0) return fmt::format("{}", size.tokens);
  return size.height == size.width ? fmt::format("{}", size.height)
                                   : fmt::format("{}x{}", size.height, size.width);
}

// Whether it is the row of the Hydra paper's table 4 that mixes the conventions: 224 px, where it
// prints 17.6, which is the total, beside a share of the blocks.
bool table_4_prints_total(const Architecture& architecture, const FlopsRow& row) {
  return (architecture.name == "deit-base" || architecture.name == "vit-base") &&
         architecture.patch_height == 16 && row.size.height == 224 && row.size.width == 224 &&
         row.schedule == "softmax";
}

constexpr const char* table_4_note =
    "table 4 prints 17.6 at 224 px: that is the total (17.58). Its 4.10 % is the share of the blocks (17.45)";

nlohmann::ordered_json to_json(const Architecture& architecture, const FlopsRow& row) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerFlops& layer : row.flops.layers)
    layers.push_back({{"layer", layers.size()},
                      {"kernel", layer.kernel.text()},
                      {"projections", layer.projections / giga},
                      {"attention", layer.attention / giga},
                      {"attention_in_total", layer.attention_counted / giga},
                      {"mlp", layer.mlp / giga},
                      {"norms", layer.norms / giga},
                      {"total", layer.total() / giga},
                      {"blocks", layer.blocks() / giga}});
  nlohmann::ordered_json object{{"architecture", architecture.name}};
  if (architecture.input == InputKind::image) {
    const bool square = row.size.height == row.size.width;
    object["image_size"] = square ? nlohmann::ordered_json(row.size.height)
                                  : nlohmann::ordered_json({row.size.height, row.size.width});
  }
  object["tokens"] = row.flops.tokens;
  object["schedule"] = row.schedule;
  object["summary"] = row.summary;
  object["unit"] = "GFLOPs";
  object["total"] = row.flops.total() / giga;
  object["blocks"] = row.flops.blocks() / giga;
  object["attention_share"] = row.flops.attention_share();
  if (table_4_prints_total(architecture, row)) object["note"] = table_4_note;
  object["embedding"] = row.flops.embedding / giga;
  object["norms"] = row.flops.norms / giga;
  object["head"] = row.flops.head / giga;
  object["layers"] = std::move(layers);
  return object;
}

std::string description(const Architecture& architecture) {
  const std::string patches =
      architecture.input == InputKind::text
          ? ""
          : fmt::format(", patches of {}x{} pixels", architecture.patch_height, architecture.patch_width);
  return fmt::format("{}: {} layers, {} heads, D = {}{}", architecture.name, architecture.layers,
                     architecture.heads, architecture.width, patches);
}

bool has_mixed_row(const Architecture& architecture, const std::vector<FlopsRow>& rows) {
  return std::ranges::any_of(rows,
                             [&](const FlopsRow& row) { return table_4_prints_total(architecture, row); });
}

void print_rows(const Architecture& architecture, const std::vector<FlopsRow>& rows) {
  const bool image = architecture.input == InputKind::image;
  std::vector<std::vector<std::string>> table{{"tokens", "kernels", "total", "blocks", "attention"}};
  if (image) table[0].insert(table[0].begin(), "image");
  const bool marked = has_mixed_row(architecture, rows);
  for (const FlopsRow& row : rows) {
    const Flops& flops = row.flops;
    table.push_back({fmt::format("{}", flops.tokens), row.schedule,
                     fmt::format("{:.2f}", flops.total() / giga),
                     fmt::format("{:.2f}{}", flops.blocks() / giga,
                                 table_4_prints_total(architecture, row) ? "*"
                                 : marked                                ? " "
                                                                         : ""),
                     fmt::format("{:.2f} %", 100 * flops.attention_share())});
    if (image) table.back().insert(table.back().begin(), written_size(row.size));
  }
  print_table(table, image ? "rrlrrr" : "rlrrr");
}

void print_layers(const FlopsRow& row) {
  std::vector<std::vector<std::string>> table{
      {"layer", "kernel", "projections", "attention", "MLP", "norms", "total", "blocks"}};
  const auto number = [](double flops) { return fmt::format("{:.2f}", flops / mega); };
  for (const LayerFlops& layer : row.flops.layers)
    table.push_back({fmt::format("{}", table.size() - 1), layer.kernel.label(), number(layer.projections),
                     number(layer.attention), number(layer.mlp), number(layer.norms), number(layer.total()),
                     number(layer.blocks())});
  print_table(table, "rlrrrrrr");
}

void print(const Architecture& architecture, const std::vector<FlopsRow>& rows, bool per_layer) {
  fmt::print("{}\n\n", description(architecture));
  print_rows(architecture, rows);
  fmt::print(
      "\nGFLOPs, counted as multiply-accumulates. total: patch embedding, blocks and head, LayerNorm at 5 "
      "an\n"
      "element, Hydra's element-wise products at 0 (Hydra paper, tables 2 and 3). blocks: the blocks' "
      "matrix\n"
      "products, Hydra at 2·N·D a layer, norms not counted (table 4); attention: its share of them.\n");
  if (has_mixed_row(architecture, rows)) fmt::print("* {}.\n", table_4_note);
  if (!per_layer) return;
  for (const FlopsRow& row : rows) {
    fmt::print("\n{}{}, {}: MFLOPs of each layer\n\n", written_size(row.size),
               architecture.input == InputKind::image ? " px" : " tokens", row.schedule);
    print_layers(row);
  }
}

void run(const FlopsOptions& options, bool scheduled) {
  const Architecture architecture = chosen_architecture(options);
  const std::vector<FlopsRow> rows = flops_table(architecture, chosen_sizes(options, architecture),
                                                 chosen_schedules(options, architecture, scheduled));
  if (!options.json) {
    print(architecture, rows, options.per_layer);
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FlopsRow& row : rows) list.push_back(to_json(architecture, row));
  fmt::print("{}\n", text_of_json(list, 2));
}

} // namespace

void add_flops_command(CLI::App& program) {
  CLI::App* const command = program.add_subcommand(
      "flops", "count multiply-accumulates of an encoder or decoder by formula, per layer and kernel");
  command->footer("Without a schedule: the rows of the Hydra paper's tables 2 to 4.");
  const auto options = std::make_shared<FlopsOptions>();
  std::vector<std::string> names;
  for (const Architecture& architecture : known_architectures()) names.push_back(architecture.name);
  command->add_option("--architecture", options->architecture,
                      fmt::format("deit-base by default; known: {}", fmt::join(names, ", ")));
  command->add_option("--model", options->model, "the architecture of a model instead, by its config.json");
  const CLI::Validator sides = number_within(1, 65536), lengths = number_within(1, 100'000'000);
  command->add_option("--image-size", options->image_sizes, "sides of square pictures, as in 224,384")
      ->delimiter(',')
      ->check(sides);
  command->add_option("--tokens", options->tokens, "lengths of texts, as in 128,512")
      ->delimiter(',')
      ->check(lengths);
  command->add_option("--patch-size", options->patch_size, "another patch size than the architecture's")
      ->check(sides);
  add_schedule_options(*command, options->schedule);
  command->add_option("--kernels", options->kernels, "a row for each of these kernels, in all layers");
  command->add_flag("--per-layer", options->per_layer, "a table of layers for each row, too");
  command->add_flag("--json", options->json, "one JSON list on standard output, with each row's layers");
  command->callback([options, command] {
    run(*options, command->count("--kernel") + command->count("--replace") + command->count("--layers") > 0);
  });
}

} // namespace hydrascope::app
