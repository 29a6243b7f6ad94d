#include "engine/training/loop/adapter_file.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/training/loop/checkpoint.h"

namespace hydrascope::training {

AdapterInfo write_adapter(const std::filesystem::path& file, const NamedTensors& parameters,
                          const AdapterRecord& record) {
  NamedTensors halves;
  for (const auto& [name, tensor] : parameters) halves[name] = tensor.detach().to(at::kHalf);
  auto layers = nlohmann::json::array();
  for (const auto& layer : record.layers)
    layers.push_back({{"layer", layer.layer}, {"kernel", layer.kernel.text()}});
  auto classes = nlohmann::json::array();
  for (const auto& one : record.classes) classes.push_back({{"id", one.id}, {"label", one.label}});
  const std::map<std::string, std::string> metadata = {{"format", "hydrascope-adapter-1"},
                                                       {"name", file.stem().string()},
                                                       {"role", record.role},
                                                       {"base", record.base},
                                                       {"layers", layers.dump()},
                                                       {"image_size", std::to_string(record.image_size)},
                                                       {"tokens", std::to_string(record.tokens)},
                                                       {"classes", classes.dump()},
                                                       {"data", record.data},
                                                       {"steps", std::to_string(record.steps)},
                                                       {"loss", fmt::format("{:.4f}", record.loss)},
                                                       {"accuracy", record.accuracy},
                                                       {"command", shared_command(record.command)}};
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
  write_tensors(file, halves, metadata);
  return read_adapter_info(file);
}

std::string shared_command(const std::string& whole) {
  std::string command = whole, result;
  constexpr std::string_view resume = " --resume";
  if (const auto found = command.find(resume);
      found != std::string::npos &&
      (found + resume.size() == command.size() || command[found + resume.size()] == ' '))
    command.erase(found, resume.size());
  std::size_t start = 0; // of the path so far: one begins after a space, a quote, a comma or =
  bool quoted = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool last = i + 1 == command.size() || command[i + 1] == ' ' || command[i + 1] == '\'';
    if (c == '/') {
      if (!last) result.resize(start); // a folder written with a slash at its end keeps its name
      continue;
    }
    result += c;
    if (c == '\'') quoted = !quoted;
    if ((c == ' ' && !quoted) || c == '\'' || c == ',' || c == '=') start = result.size();
  }
  return result;
}

} // namespace hydrascope::training
