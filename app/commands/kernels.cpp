// hydrascope kernels: the registry, as a table or as JSON.
#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/kl.h"
#include "app/commands/output.h"
#include "engine/attention/interface/kernel_info.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/run/devices.h"

namespace hydrascope::app {
namespace {

std::vector<std::string> parameter_names(const KernelInfo& info) {
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : info.parameters) names.push_back(parameter.name);
  return names;
}

std::string accepted_values(const ParameterInfo& parameter) {
  switch (parameter.kind) {
    case ParameterInfo::Kind::divisor: return "a divisor of D";
    case ParameterInfo::Kind::number: return "a whole number";
    case ParameterInfo::Kind::flag: return "0 or 1";
    case ParameterInfo::Kind::source: return "a file or a bundled map";
    case ParameterInfo::Kind::choice: break;
  }
  return fmt::format("{}", fmt::join(parameter.choices, ", "));
}

nlohmann::ordered_json to_json(const MapProperties& map) {
  return {{"bounded", map.bounded}, {"signed", map.takes_negatives}, {"linear", map.linear}};
}

// Why CUDA runs no kernel on this machine by this build; empty if it does.
std::string why_no_cuda(const DeviceList& devices) {
  std::string why = devices.no_cuda.empty() ? "there is no CUDA device" : devices.no_cuda;
  for (const DeviceFacts& device : devices.accelerators) {
    if (!device.name.starts_with("cuda")) continue;
    if (device.unusable.empty()) return "";
    why = device.unusable;
  }
  return why;
}

// Where a kernel runs here, of the devices that it is written for.
std::vector<std::string> devices_here(const KernelInfo& info, const std::string& no_cuda) {
  std::vector<std::string> here = info.devices;
  if (!no_cuda.empty()) std::erase(here, "cuda");
  return here;
}

nlohmann::ordered_json to_json(const KernelInfo& info, const std::string& no_cuda) {
  nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
  for (const ParameterInfo& parameter : info.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"values", accepted_values(parameter)},
                          {"default", parameter.initial},
                          {"meaning", parameter.meaning}});
  }
  return {{"name", info.name},
          {"family", family_name(info.family)},
          {"definition", info.definition},
          {"complexity", info.complexity},
          {"feature_width", info.feature_width},
          {"source", info.source},
          {"published", info.published},
          {"normalised", info.normalised},
          {"weights_positive", info.weights_positive},
          {"trainable", info.trainable},
          {"exact_softmax", info.exact_softmax},
          {"query_map", to_json(info.query_map)},
          {"key_map", to_json(info.key_map)},
          {"positional", info.positional},
          {"parameters", parameter_names(info)},
          {"parameter_details", std::move(parameters)},
          {"devices", devices_here(info, no_cuda)},
          {"implemented_for", info.devices},
          {"no_cuda", no_cuda.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(no_cuda)}};
}

const char* yes(bool value) { return value ? "yes" : "no"; }

std::vector<std::string> to_row(const KernelInfo& info, const std::string& no_cuda) {
  const bool has_map = info.feature_width != "—";
  const auto of_maps = [&](bool MapProperties::*property) -> std::string {
    const bool query = info.query_map.*property, key = info.key_map.*property;
    return !has_map ? "—" : query == key ? yes(query) : query ? "φ_Q" : "φ_K";
  };
  const bool footnote = info.query_map.up_to_length || info.key_map.up_to_length;
  const char* const mark = footnote ? "*" : "";
  return {info.name,
          family_name(info.family),
          info.complexity,
          info.feature_width,
          yes(info.normalised),
          yes(info.weights_positive),
          yes(info.trainable),
          of_maps(&MapProperties::bounded),
          of_maps(&MapProperties::takes_negatives),
          of_maps(&MapProperties::linear) + mark,
          info.parameters.empty() ? "—" : fmt::format("{}", fmt::join(parameter_names(info), ", ")),
          fmt::format("{}", fmt::join(devices_here(info, no_cuda), ", ")),
          info.source.empty() ? "—" : info.source,
          info.published.empty() ? "—" : info.published,
          info.definition};
}

// What --measure adds.
struct Measured {
  double spiky = KernelMeans::undefined;     // mean entropy over softmax's
  double monotonic = KernelMeans::undefined; // mean ρ
  bool untrained = false;
};
using AllMeasured = std::map<std::string, Measured>;

AllMeasured measure(const CommonOptions& common, const DataOptions& data) {
  TeacherForcedRequest request = measure_request(common, data);
  if (request.data.size() > 1)
    throw UsageError("--data", "kernels --measure takes one file", "hydrascope kl takes several");
  for (const KernelInfo& info : kernel_infos()) request.kernels.push_back({info.name, {}});
  request.skip_unsupported = true;
  const TeacherForcedOutcome outcome = measure_with_progress(request, "kernels");
  double reference = KernelMeans::undefined;
  for (const KernelMeasure& measure : outcome.measures)
    if (measure.kernel.name == "softmax") reference = measure.mean.entropy;
  AllMeasured all;
  for (const KernelMeasure& measure : outcome.measures)
    all[measure.kernel.name] = {measure.mean.entropy / reference, measure.mean.spearman, measure.untrained};
  return all;
}

struct KernelsOptions {
  CommonOptions common;
  DataOptions data;
  bool measure = false;
};

void run(const KernelsOptions& options) {
  if (!options.measure && !options.data.data.empty())
    throw UsageError("--data", "is read by --measure alone", "add --measure");
  const DeviceList devices = list_devices();
  const std::string no_cuda = why_no_cuda(devices);
  AllMeasured measured;
  if (options.measure) measured = measure(options.common, options.data);
  if (options.common.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const KernelInfo& info : kernel_infos()) {
      nlohmann::ordered_json entry = to_json(info, no_cuda);
      if (const auto found = measured.find(info.name); found != measured.end()) {
        entry["spiky"] = number_or_null(found->second.spiky);
        entry["monotonic"] = number_or_null(found->second.monotonic);
        entry["untrained"] = found->second.untrained;
      }
      list.push_back(std::move(entry));
    }
    fmt::print("{}\n", text_of_json(list, 2));
    return;
  }
  std::vector<std::vector<std::string>> rows{{"name", "family", "complexity", "d′", "normalised",
                                              "weights ≥ 0", "trainable", "φ bounded", "φ signed", "φ linear",
                                              "parameters", "devices", "source", "published", "definition"}};
  std::vector<KernelInfo> grouped = kernel_infos();
  std::ranges::stable_sort(grouped, {}, &KernelInfo::family);
  for (const KernelInfo& info : grouped) rows.push_back(to_row(info, no_cuda));
  if (options.measure) {
    rows.front().insert(rows.front().begin() + 1, {"spiky", "monotonic"});
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const Measured& of = measured[rows[i].front()];
      rows[i].insert(rows[i].begin() + 1, {decimal(of.spiky), decimal(of.monotonic)});
      if (of.untrained) rows[i].front() += " (untrained)";
    }
  }
  print_table(rows);
  fmt::print("* as the Hydra paper counts it: x/‖x‖ is linear up to the length of x\n");
  fmt::print(
      "source: the paper that a kernel follows, with its equation; published: what the papers print\n");
  fmt::print("devices: where it runs on this machine by this build{}\n",
             !no_cuda.empty()                    ? "; not cuda: " + no_cuda
             : !devices.no_fused_kernels.empty() ? "; cuda by reference: " + devices.no_fused_kernels
                                                 : "");
}

} // namespace

void add_kernels_command(CLI::App& program) {
  CLI::App* const command =
      program.add_subcommand("kernels", "list the attention kernels and what is known of each");
  const auto options = std::make_shared<KernelsOptions>();
  add_common_options(*command, options->common);
  add_data_options(*command, options->data);
  command->add_flag("--measure", options->measure,
                    "also how spiky (entropy over softmax's) and monotonic (Spearman's ρ with q·k) each is "
                    "for the model, teacher-forced; --data: default sentences of the program's own");
  command->callback([options] { run(*options); });
}

} // namespace hydrascope::app
