// hydrascope train: models from random weights.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "app/commands/training_display.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/training/tasks/from_scratch.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;

struct TrainOptions {
  std::string preset, tokenizer, output, curve, validation;
  ScheduleText schedule;
  std::vector<std::string> data;
  std::optional<int> layers, heads, width, intermediate, tokens, side, patch, batch, epochs;
  std::optional<double> learning_rate, weight_decay, warmup;
  std::vector<int> sequences;
  int accumulate = 1, patience = 0, validate_every = 0, limit = 0;
  double validation_share = 0.1, checkpoint_seconds = 60;
  LabelledColumns columns;
  bool header = false, resume = false, json = false;
  ExecutionOptions execution;
};

// The tokenizer of a decoder's folder; nothing for `bytes`.
std::filesystem::path tokenizer_folder(const std::string& name) {
  if (name == "bytes") return {};
  return resolve_model(name.empty() ? "smollm2" : name);
}

ScratchRequest request_from(const TrainOptions& options, const std::string& command_line) {
  ScratchRequest request = scratch_request(scratch_preset(options.preset));
  const auto take = [](auto& field, const auto& given) { field = given.value_or(field); };
  request.schedule = options.schedule;
  take(request.layers, options.layers);
  take(request.heads, options.heads);
  take(request.width, options.width);
  // The MLP keeps its proportion unless it is given.
  const int proportion = scratch_preset(options.preset).intermediate / scratch_preset(options.preset).width;
  request.intermediate = options.intermediate.value_or(
      options.width ? std::max(1, proportion) * *options.width : request.intermediate);
  take(request.tokens, options.tokens);
  take(request.side, options.side);
  take(request.patch, options.patch);
  TrainingSettings& settings = request.settings;
  take(settings.batch, options.batch);
  take(settings.epochs, options.epochs);
  take(settings.learning_rate, options.learning_rate);
  settings.accumulate = options.accumulate;
  settings.patience = options.patience;
  settings.validate_every = options.validate_every;
  settings.validation_share = options.validation_share;
  settings.checkpoint_seconds = options.checkpoint_seconds;
  settings.execution = options.execution;
  settings.output = options.output;
  settings.curve = options.curve;
  settings.resume = options.resume;
  settings.command = command_line;
  take(request.weight_decay, options.weight_decay);
  take(request.warmup, options.warmup);
  request.data.assign(options.data.begin(), options.data.end());
  request.validation = options.validation;
  request.columns = options.columns;
  request.header = options.header;
  request.limit = options.limit;
  if (request.task == ScratchTask::next_token)
    request.tokenizer = tokenizer_folder(options.tokenizer);
  else if (!options.tokenizer.empty())
    throw UsageError("--tokenizer", "is for language models; the others have their own", "leave it out");
  if (!options.sequences.empty())
    request.sequences = {options.sequences[0], options.sequences[1], options.sequences[2]};
  return request;
}

void print_outcome(const ScratchOutcome& outcome, const ScratchRequest& request, const bool json) {
  const HeldOut& held_out = outcome.training.held_out;
  const bool predicts = held_out.measure == HeldOutMeasure::perplexity;
  if (json) {
    const ordered_json document = {
        {"model", outcome.folder.string()},
        {"adapter", outcome.adapter.empty() ? ordered_json() : ordered_json(outcome.adapter.string())},
        {"parameters", outcome.parameters},
        {"steps", outcome.training.steps},
        {"loss", outcome.training.final_loss},
        {"validation_loss", held_out.loss},
        {"perplexity", predicts ? ordered_json(held_out.perplexity) : ordered_json()},
        {"accuracy", predicts ? ordered_json() : ordered_json(held_out.accuracy)},
        {"last_accuracy",
         predicts ? ordered_json() : ordered_json(last_validation(outcome.training).accuracy)},
        {"constant_answer", predicts ? ordered_json() : ordered_json(held_out.constant_answer)},
        {"test_accuracy", number_or_null(outcome.test_accuracy)},
        {"test_constant_answer", number_or_null(outcome.test_constant)},
        {"seconds", outcome.seconds},
        {"notes", outcome.training.notes}};
    fmt::print("{}\n", text_of_json(document, 2));
    return;
  }
  fmt::print("{}: {} parameters, {} steps, held-out loss {:.4f}", outcome.folder.string(), outcome.parameters,
             outcome.training.steps, held_out.loss);
  if (predicts)
    fmt::print(", perplexity {:.2f}", held_out.perplexity);
  else
    fmt::print(", top-1 {:.2f} % ({:.2f} for always the commonest class)", 100 * held_out.accuracy,
               100 * held_out.constant_answer);
  if (outcome.test_accuracy)
    fmt::print(", test top-1 {:.2f} % ({:.2f} for always the commonest class)", 100 * *outcome.test_accuracy,
               100 * outcome.test_constant.value_or(0));
  fmt::print("\n");
  if (parse_schedule(request.schedule, request.layers).all_exact_softmax()) return;
  fmt::print("it runs with --model {} --kernel {}", outcome.folder.string(), request.schedule.kernel);
  for (const std::string& replaced : request.schedule.replace) fmt::print(" --replace {}", replaced);
  fmt::print("\n");
}

void run(const TrainOptions& options, const std::string& command_line) {
  const ScratchRequest request = request_from(options, command_line);
  ScratchOutcome outcome;
  {
    TrainingDisplay display;
    outcome = train_from_scratch(request, display.observer(), display.stop());
  }
  check_not_stopped("train", outcome.training, request.settings.output);
  if (!options.curve.empty()) write_curve(options.curve, outcome.training);
  print_outcome(outcome, request, options.json);
}

void add_data(CLI::App& command, TrainOptions& options) {
  constexpr const char* group = "Data";
  command
      .add_option(
          "--data", options.data,
          "gpt2-wt103: text files; lra-text and lra-retrieval: a tab-separated table; deit-b and lra-image: "
          "a folder with a sub-folder of pictures per class; lra-listops and lra-pathfinder make their own")
      ->delimiter(',')
      ->group(group);
  command.add_option("--validation", options.validation, "the same, held out (default: a share of the data)")
      ->group(group);
  command.add_option("--validation-share", options.validation_share, "share of the items that is held out")
      ->check(number_within(0.001, 0.9))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--sequences", options.sequences,
                  "generated ones for training, validation and test, as 96000,2000,2000")
      ->delimiter(',')
      ->expected(3)
      ->check(positive_number())
      ->group(group);
  command.add_option("--limit", options.limit, "at most: lines, pieces of text, pictures of a class")
      ->check(non_negative_number())
      ->group(group);
  command.add_option("--column", options.columns.text, "tables: column of the text, from 1")
      ->check(positive_number())
      ->capture_default_str()
      ->group(group);
  command.add_option("--pair-column", options.columns.pair, "lra-retrieval: column of the second text")
      ->check(positive_number())
      ->group(group);
  command.add_option("--label-column", options.columns.label, "tables: column of the label")
      ->check(positive_number())
      ->capture_default_str()
      ->group(group);
  command.add_flag("--header", options.header, "tables: skip the first line")->group(group);
  command
      .add_option("--tokenizer", options.tokenizer,
                  "gpt2-wt103: a decoder's name or folder, whose tokenizer the model has, or bytes (smollm2)")
      ->group(group);
}

void add_shape(CLI::App& command, TrainOptions& options) {
  constexpr const char* group = "Model and kernels";
  const auto add = [&](const char* name, std::optional<int>& value, const char* help) {
    command.add_option(name, value, help)->check(positive_number())->group(group);
  };
  add_kernel_options(command, options.schedule);
  add("--layers", options.layers, "default: the preset's");
  add("--heads", options.heads, "default: the preset's");
  add("--width", options.width, "default: the preset's");
  add("--mlp", options.intermediate, "width of the MLP (default: in the preset's proportion)");
  add("--chunk", options.tokens, "texts: tokens of a piece, of a text or of an expression, at most");
  add("--image-size", options.side, "pictures: pixels of a side");
  add("--patch-size", options.patch, "pictures: pixels of the side of a patch, which is a token");
}

void add_steps(CLI::App& command, TrainOptions& options) {
  constexpr const char* group = "Optimisation";
  command.add_option("--epochs", options.epochs, "at most; default: the preset's")
      ->check(positive_number())
      ->group(group);
  command.add_option("--batch", options.batch, "default: the preset's")
      ->check(positive_number())
      ->group(group);
  command
      .add_option("--accumulate", options.accumulate,
                  "run each batch in so many parts, one after another: less memory, the same gradients")
      ->check(positive_number())
      ->capture_default_str()
      ->group(group);
  command.add_option("--lr,--learning-rate", options.learning_rate, "the peak; default: the preset's")
      ->check(positive_number())
      ->group(group);
  command.add_option("--weight-decay", options.weight_decay, "default: the preset's")
      ->check(non_negative_number())
      ->group(group);
  command
      .add_option("--warmup", options.warmup,
                  "share of the steps over which the learning rate rises; default: the preset's")
      ->check(number_within(0.0, 1.0))
      ->group(group);
  command
      .add_option("--validate-every", options.validate_every,
                  "measure on the held-out items after so many steps, too")
      ->check(non_negative_number())
      ->group(group);
  command
      .add_option("--patience", options.patience,
                  "stop after so many epochs that made it no better (0: never)")
      ->check(non_negative_number())
      ->group(group);
}

void add_output(CLI::App& command, TrainOptions& options) {
  constexpr const char* output = "Output";
  constexpr const char* execution = "Execution";
  command.add_option("-o,--output", options.output, "the model's folder; checkpoints go beside it")
      ->required()
      ->group(output);
  command.add_flag("--resume", options.resume, "go on from the checkpoint beside the output")->group(output);
  command.add_option("--checkpoint-seconds", options.checkpoint_seconds, "how often the state is kept")
      ->check(non_negative_number())
      ->capture_default_str()
      ->group(output);
  command.add_option("--curve", options.curve, "write the loss of every step as CSV")->group(output);
  command
      .add_option("--device", options.execution.device,
                  "auto or cpu, cuda or cuda:i where there is an NVIDIA GPU")
      ->capture_default_str()
      ->group(execution);
  command.add_option("--dtype", options.execution.dtype, "float32, bfloat16 or float16, of matrix products")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->group(execution);
  command.add_option("--threads", options.execution.threads, "threads for the model (default: all)")
      ->check(thread_count())
      ->group(execution);
  command.add_option("--seed", options.execution.seed, "random seed")
      ->capture_default_str()
      ->group(execution);
  command.add_flag("--json", options.json, "one JSON document on standard output")->group(execution);
}

std::string list_of_presets() {
  std::string text;
  for (const ScratchPreset& preset : scratch_presets())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", preset.name, preset.description);
  return text;
}

} // namespace

void add_train_command(CLI::App& program, const std::string& command_line) {
  CLI::App* const command =
      program.add_subcommand("train",
                             "train a model from random weights, with any kernel (Hydra paper, figs. 2 and "
                             "4; Hedgehog paper, tables 6 and 7)");
  const auto options = std::make_shared<TrainOptions>();
  options->execution.dtype = "auto";
  command->add_option("--preset", options->preset, list_of_presets())->required();
  add_data(*command, *options);
  add_shape(*command, *options);
  add_steps(*command, *options);
  add_output(*command, *options);
  command->callback([options, command_line] { run(*options, command_line); });
}

} // namespace hydrascope::app
