#include "app/commands/recall_output.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/commands/training_progress.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kernel_in_name = "{kernel}";

// A kernel as part of a file's name.
std::string file_name(const KernelSpec& kernel) {
  std::string name = kernel.text();
  std::ranges::replace_if(
      name, [](const char letter) { return letter == ':' || letter == '='; }, '-');
  return name;
}

std::filesystem::path curve_file(const RecallFiles& files, const KernelSpec& kernel) {
  std::string name = files.curve;
  if (const auto place = name.find(kernel_in_name); place != std::string::npos)
    name.replace(place, kernel_in_name.size(), file_name(kernel));
  return name;
}

ordered_json read_results(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return ordered_json::array();
  ordered_json list = ordered_json::parse(read_text_file(file), nullptr, false);
  const bool ours =
      list.is_array() && std::ranges::all_of(list, [](const ordered_json& entry) {
        return entry.is_object() && entry.contains("configuration") && entry["configuration"].is_string();
      });
  if (!ours) throw ForeignFile(file.string(), "is no list that recall wrote", "leave out --resume");
  return list;
}

// The entry that was made with the same settings; null if there is none.
const ordered_json* find(const ordered_json& list, const std::string& configuration) {
  const auto found = std::ranges::find_if(
      list, [&](const ordered_json& entry) { return entry["configuration"] == configuration; });
  return found == list.end() ? nullptr : &*found;
}

} // namespace

ordered_json recall_json(const KernelSpec& kernel, const RecallOutcome& outcome) {
  return {{"kernel", kernel.text()},
          {"accuracy", outcome.accuracy},
          {"entropy", outcome.entropy ? ordered_json(*outcome.entropy) : ordered_json()},
          {"loss", outcome.loss},
          {"layer_entropies", outcome.layer_entropies},
          {"epochs", outcome.epochs},
          {"steps", outcome.training.steps},
          {"validation_loss", outcome.training.held_out.loss},
          {"validation_accuracy", outcome.training.held_out.accuracy},
          {"parameters", outcome.parameters},
          {"zero_denominators", outcome.zero_denominators},
          {"seconds", outcome.seconds},
          {"configuration", outcome.configuration}};
}

ordered_json recall_kernels(RecallRequest request, const std::vector<KernelSpec>& kernels,
                            const RecallFiles& files) {
  if (kernels.size() > 1 && !files.curve.empty() && files.curve.find(kernel_in_name) == std::string::npos)
    throw UsageError("--curve " + files.curve, "the curves of several kernels do not fit into one file",
                     "put {kernel} into its name");
  if (files.resume && files.results.empty())
    throw UsageError("--resume", "goes on from what lies beside the output", "name the output with -o");
  const ordered_json earlier = files.resume ? read_results(files.results) : ordered_json::array();
  ordered_json list = ordered_json::array();
  for (const KernelSpec& kernel : kernels) {
    request.kernel = kernel;
    if (const ordered_json* const known = find(earlier, recall_configuration(request))) {
      list.push_back(*known);
      continue;
    }
    if (!files.results.empty()) {
      request.settings.output = files.results.string() + "." + file_name(kernel);
      request.settings.resume =
          files.resume && std::filesystem::exists(checkpoint_path(request.settings.output));
    }
    RecallOutcome outcome;
    {
      if (kernels.size() > 1) fmt::print(stderr, "{}\n", kernel.text());
      TrainingDisplay display;
      outcome = recall(request, display.observer(), display.stop());
    }
    if (outcome.training.stopped)
      throw Error("recall",
                  fmt::format("stopped at {} after {} steps", kernel.text(), outcome.training.steps),
                  files.results.empty() ? "with -o FILE it could be resumed" : "go on with --resume");
    if (!files.curve.empty()) write_curve(curve_file(files, kernel), outcome.training);
    list.push_back(recall_json(kernel, outcome));
    if (!files.results.empty()) write_file_atomically(files.results, list.dump(2) + "\n");
  }
  return list;
}

} // namespace hydrascope::app
