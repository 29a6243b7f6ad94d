// hydrascope kernels: the registry, as a table or as JSON.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/commands/command.h"
#include "app/commands/table.h"
#include "engine/attention/kernel_info.h"

namespace hydrascope::app {
namespace {

nlohmann::ordered_json to_json(const KernelInfo& info) {
  return {{"name", info.name},
          {"family", info.family},
          {"definition", info.definition},
          {"complexity", info.complexity},
          {"feature_width", info.feature_width},
          {"source", info.source},
          {"published", info.published},
          {"normalised", info.normalised},
          {"weights_positive", info.weights_positive},
          {"trainable", info.trainable},
          {"exact_softmax", info.exact_softmax},
          {"map_bounded", info.map_bounded},
          {"map_signed", info.map_signed},
          {"map_linear", info.map_linear},
          {"parameters", info.parameters},
          {"devices", info.devices}};
}

const char* yes(bool value) { return value ? "yes" : "no"; }

std::vector<std::string> to_row(const KernelInfo& info) {
  const bool has_map = info.feature_width != "—";
  const auto of_map = [&](bool value) { return has_map ? yes(value) : "—"; };
  return {info.name,
          info.family,
          info.complexity,
          info.feature_width,
          yes(info.normalised),
          yes(info.weights_positive),
          yes(info.trainable),
          of_map(info.map_bounded),
          of_map(info.map_signed),
          of_map(info.map_linear),
          info.parameters.empty() ? "—" : fmt::format("{}", fmt::join(info.parameters, ", ")),
          fmt::format("{}", fmt::join(info.devices, ", ")),
          info.published.empty() ? "—" : info.published,
          info.definition};
}

void run(bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const KernelInfo& info : kernel_infos()) list.push_back(to_json(info));
    fmt::print("{}\n", list.dump(2));
    return;
  }
  std::vector<std::vector<std::string>> rows{{"name", "family", "complexity", "d′", "normalised",
                                              "weights ≥ 0", "trainable", "φ bounded", "φ signed", "φ linear",
                                              "parameters", "devices", "published", "definition"}};
  for (const KernelInfo& info : kernel_infos()) rows.push_back(to_row(info));
  print_table(rows);
}

} // namespace

void add_kernels_command(CLI::App& program) {
  CLI::App* const command =
      program.add_subcommand("kernels", "the attention kernels and what is known of each");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "one JSON list on standard output");
  command->callback([json] { run(*json); });
}

} // namespace hydrascope::app
