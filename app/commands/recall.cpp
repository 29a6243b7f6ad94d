// hydrascope recall: associative recall by kernel (Hedgehog paper, Fig. 4 and B.1).
#include "app/commands/recall.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "app/commands/training_display.h"
#include "app/views/training_view.h"
#include "engine/base/error.h"
#include "engine/base/json_limits.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/base/safetensors.h"
#include "engine/base/version.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kernel_in_name = "{kernel}";

// The kernel as part of a file's name.
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

bool has_text(const ordered_json& entry, const char* name) {
  return entry.contains(name) && entry[name].is_string();
}

ordered_json read_results(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return ordered_json::array();
  auto list = parse_json<ordered_json>(read_text_file(file));
  const bool ours = list.is_array() && std::ranges::all_of(list, [](const ordered_json& entry) {
                      const auto has_number = [&](const char* name) { // null: not finite, or none
                        return entry.contains(name) && (entry[name].is_number() || entry[name].is_null());
                      };
                      return entry.is_object() && has_text(entry, "configuration") &&
                             has_text(entry, "kernel") &&
                             std::ranges::all_of(
                                 std::array{"accuracy", "entropy", "loss", "epochs", "seconds"}, has_number);
                    });
  if (!ours) throw ForeignFile(file.string(), "is no list that recall wrote", "leave out --resume");
  return list;
}

// The entry of a training with the same settings; null if there is none.
const ordered_json* find(const ordered_json& list, const std::string& configuration) {
  const auto found = std::ranges::find_if(
      list, [&](const ordered_json& entry) { return entry["configuration"] == configuration; });
  return found == list.end() ? nullptr : &*found;
}

bool belongs_to(const std::filesystem::path& checkpoint, const std::string& configuration) {
  std::error_code none;
  if (!std::filesystem::exists(checkpoint, none)) return false;
  try {
    const SafetensorsFile file = SafetensorsFile::open(checkpoint);
    const auto found = file.metadata().find("configuration");
    return found != file.metadata().end() && found->second == configuration;
  } catch (const Error&) {
    return false; // not a checkpoint
  }
}

// The list so far, and after it what an earlier run had: it must survive an end before this run reaches it.
ordered_json with_later(ordered_json list, const ordered_json& earlier) {
  for (const ordered_json& entry : earlier)
    if (find(list, entry["configuration"]) == nullptr) list.push_back(entry);
  return list;
}

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
          {"version", version},
          {"configuration", outcome.configuration}};
}

} // namespace

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
    std::filesystem::path checkpoint;
    std::error_code stays;
    if (!files.results.empty()) {
      request.settings.output = files.results.string() + "." + file_name(kernel);
      checkpoint = checkpoint_path(request.settings.output);
      request.settings.resume = files.resume && std::filesystem::exists(checkpoint);
    }
    const std::string configuration = recall_configuration(request);
    if (const ordered_json* const known = find(earlier, configuration)) {
      list.push_back(*known);
      // Left where it was killed after writing the list.
      if (belongs_to(checkpoint, configuration)) std::filesystem::remove(checkpoint, stays);
      continue;
    }
    RecallOutcome outcome;
    {
      if (kernels.size() > 1) fmt::print(stderr, "{}\n", kernel.label());
      TrainingDisplay display;
      outcome = recall(request, display.observer(), display.stop());
    }
    if (outcome.training.stopped)
      throw Error("recall",
                  fmt::format("stopped at {} after {} steps", kernel.label(), outcome.training.steps),
                  files.results.empty() ? "with -o FILE it could be resumed" : "go on with --resume");
    if (!files.curve.empty()) write_curve(curve_file(files, kernel), outcome.training);
    list.push_back(recall_json(kernel, outcome));
    if (files.results.empty()) continue;
    write_file_atomically(files.results, text_of_json(with_later(list, earlier), 2) + "\n");
    std::filesystem::remove(checkpoint, stays);
  }
  return list;
}

namespace {

struct RecallOptions {
  std::string kernels, preset = "paper";
  std::optional<std::string> loss, schedule;
  std::optional<double> learning_rate, weight_decay;
  std::optional<int> batch, epochs, patience, warmup;
  std::vector<int> sequences;
  double checkpoint_seconds = 60;
  ExecutionOptions execution;
  RecallFiles files;
  bool json = false;
};

// The preset's settings with those of the command line in their place.
RecallRequest request_from(const RecallOptions& options) {
  RecallRequest request =
      recall_request(options.preset == "small" ? RecallPreset::small : RecallPreset::paper);
  TrainingSettings& settings = request.settings;
  settings.learning_rate = options.learning_rate.value_or(settings.learning_rate);
  settings.batch = options.batch.value_or(settings.batch);
  settings.epochs = options.epochs.value_or(settings.epochs);
  settings.patience = options.patience.value_or(settings.patience);
  settings.checkpoint_seconds = options.checkpoint_seconds;
  settings.execution = options.execution;
  request.weight_decay = options.weight_decay.value_or(request.weight_decay);
  request.warmup = options.warmup.value_or(request.warmup);
  if (options.schedule) request.cosine = *options.schedule == "cosine";
  if (options.loss) request.all_values = *options.loss == "all";
  if (!options.sequences.empty()) {
    request.task.training = options.sequences[0];
    request.task.validation = options.sequences[1];
    request.task.test = options.sequences[2];
  }
  return request;
}

void print_results(const nlohmann::ordered_json& list) {
  std::vector<std::vector<std::string>> rows{{"kernel", "accuracy", "entropy", "loss", "epochs", "time"}};
  for (const auto& entry : list) {
    const auto cell = [&](const char* name, const auto& text) {
      const auto& value = entry[name];
      return value.is_null() ? "—" : text(value.template get<double>());
    };
    const auto decimals = [](const int count) {
      return [count](const double value) { return fmt::format("{:.{}f}", value, count); };
    };
    rows.push_back({entry["kernel"],
                    cell("accuracy", [](const double share) { return fmt::format("{:.2f} %", 100 * share); }),
                    cell("entropy", decimals(3)), cell("loss", decimals(4)), cell("epochs", decimals(0)),
                    cell("seconds", [](const double seconds) { return duration_text(seconds); })});
  }
  print_table(rows, "lrrrrr");
}

void run(const RecallOptions& options) {
  const auto kernels = parse_kernel_list(options.kernels, "--kernel");
  const auto list = recall_kernels(request_from(options), kernels, options.files);
  if (options.json)
    fmt::print("{}\n", text_of_json(list, 2));
  else
    print_results(list);
}

void add_settings(CLI::App& command, RecallOptions& options) {
  command.add_option("--lr,--learning-rate", options.learning_rate, "default: the preset's")
      ->check(positive_number());
  command.add_option("--weight-decay", options.weight_decay, "default: the preset's")
      ->check(non_negative_number());
  command.add_option("--warmup", options.warmup, "steps over which the learning rate rises")
      ->check(non_negative_number());
  command
      .add_option("--schedule", options.schedule,
                  "of the learning rate after that: constant, or a cosine to 0; default: the preset's")
      ->check(CLI::IsMember({"constant", "cosine"}));
  command.add_option("--batch", options.batch, "default: the preset's")->check(positive_number());
  command.add_option("--epochs", options.epochs, "at most; default: the preset's")->check(positive_number());
  command
      .add_option("--patience", options.patience,
                  "stop after so many epochs without a better validation loss (0: never)")
      ->check(non_negative_number());
  command
      .add_option("--loss", options.loss,
                  "of the last token, or of all values whose key has occurred; default: the preset's")
      ->check(CLI::IsMember({"last", "all"}));
  command
      .add_option("--sequences", options.sequences, "for training, validation and test, as 10000,1000,2000")
      ->delimiter(',')
      ->expected(3)
      ->check(positive_number());
}

} // namespace

void add_recall_command(CLI::App& program) {
  CLI::App* const command = program.add_subcommand(
      "recall",
      "train a small decoder on associative recall, kernel by kernel (Hedgehog paper, Fig. 4 and B.1)");
  const auto options = std::make_shared<RecallOptions>();
  command->add_option("--kernel,--kernels", options->kernels, "kernels of all layers, as a,b,c")->required();
  command
      ->add_option(
          "--preset", options->preset,
          "paper: 4 layers, 4 heads, d = 64, 128 tokens; small: 2 layers, 2 heads, d = 32, 64 tokens")
      ->check(CLI::IsMember({"paper", "small"}))
      ->capture_default_str();
  add_settings(*command, *options);
  command->add_option("-o,--output", options->files.results,
                      "write the list of results as JSON after each kernel; checkpoints go beside it");
  command->add_flag("--resume", options->files.resume,
                    "keep the results that the output holds, and go on from the checkpoint beside it");
  command->add_option("--checkpoint-seconds", options->checkpoint_seconds, "how often the state is kept")
      ->check(non_negative_number())
      ->capture_default_str();
  command->add_option("--curve", options->files.curve,
                      "write the loss of every step as CSV; {kernel} in its name stands for the kernel");
  command
      ->add_option("--device", options->execution.device,
                   "auto or cpu, cuda or cuda:i where there is an NVIDIA GPU")
      ->capture_default_str();
  command->add_option("--threads", options->execution.threads, "threads for the model (default: all)")
      ->check(thread_count());
  command->add_option("--seed", options->execution.seed, "random seed")->capture_default_str();
  command->add_flag("--json", options->json, "one JSON document on standard output");
  command->callback([options] { run(*options); });
}

} // namespace hydrascope::app
