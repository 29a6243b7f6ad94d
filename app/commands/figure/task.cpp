#include "app/commands/figure/task.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/document/picture_folder.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/figures/text.h"
#include "engine/run/devices.h"

namespace hydrascope::app {

std::vector<std::string> notes_of_letters(const FigureOptions& options) {
  const std::string ending = lower_case(std::filesystem::path(options.output).extension().string());
  if ((ending != ".png" && ending != ".pdf") || !has_right_to_left(options.text + options.pair)) return {};
  return {"letters that are read from right to left are in the wrong order in " + ending + ": use .svg"};
}

RunTask run_task(const FigureTask& task) {
  RunTask run;
  run.request = request_of(task.options, input_of(task.options));
  const ModelInfo model = read_model_info(run.request.model_folder);
  run.layers = model.layers;
  run.heads = model.heads;
  run.causal = model.causal;
  return run;
}

const ImageInput* picture_of(const RunRequest& request) { return std::get_if<ImageInput>(&request.input); }

Figure finished(FigureTask& task, Figure figure, const RunRequest& request, const RunResult& run) {
  for (const std::string& note : run.notes) {
    if (std::ranges::find(task.notes, note) == task.notes.end()) task.notes.push_back(note);
  }
  figure.provenance = provenance_json(run, request.input, request.execution, task.command);
  return figure;
}

std::vector<KernelSpec> kernels_or_own(const FigureOptions& options, const RunTask& run, int layer) {
  if (!options.kernels.empty()) return parse_kernel_list(options.kernels);
  return {resolved(run.request.schedule, run.layers).layers.at(static_cast<std::size_t>(layer))};
}

void require_heads_anywhere(const HeadChoice& head, const int most) {
  if (shown_heads(head, most).empty())
    throw UsageError("--head", "none of the kernels has " + head.text(),
                     fmt::format("use 0 to {}", most - 1));
}

namespace {

using nlohmann::ordered_json;

// The hash of the hashes of its pictures, in their order.
std::string folder_hash(const std::filesystem::path& folder) {
  std::string hashes;
  for (const FolderPicture& picture : list_pictures(folder).pictures) hashes += sha256_of_file(picture.file);
  return sha256_of_text(hashes);
}

ordered_json inputs_json(const std::vector<std::filesystem::path>& files) {
  ordered_json inputs = ordered_json::array();
  for (const auto& file : files) {
    const bool folder = std::filesystem::is_directory(file);
    inputs.push_back(
        {{"name", file.filename().string()}, {"hash", folder ? folder_hash(file) : sha256_of_file(file)}});
  }
  return inputs;
}

} // namespace

std::string with_files(const std::string& provenance, const std::vector<std::filesystem::path>& files) {
  ordered_json json = ordered_json::parse(provenance);
  json.erase("input");
  json["inputs"] = inputs_json(files);
  return text_of_json(json);
}

std::string data_provenance(const FigureTask& task, const std::filesystem::path& model,
                            const std::string& model_hash, const std::vector<AdapterInfo>& adapters,
                            const std::vector<std::filesystem::path>& data) {
  ordered_json json{{"program", "hydrascope"},
                    {"version", program_version()},
                    {"command", without_output_options(task.command)}};
  if (!model.empty()) {
    json["model"] = {{"name", read_model_info(model).name}, {"hash", model_hash}};
    json["adapters"] = ordered_json::array();
    for (const AdapterInfo& adapter : adapters)
      json["adapters"].push_back({{"name", adapter.name}, {"hash", adapter.hash}});
  }
  json["inputs"] = inputs_json(data);
  const ExecutionOptions& execution = task.options.common.execution;
  json["device"] = device_name(execution.device);
  json["dtype"] = execution.dtype;
  json["seed"] = execution.seed;
  return text_of_json(json);
}

} // namespace hydrascope::app
