#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "app/commands/command.h"
#include "app/commands/training_progress.h"
#include "engine/plain/error.h"

namespace hydrascope::app {
namespace {

struct FinetuneOptions {
  CommonOptions common;
  std::string data, validation, labels, classes, train_layers, output, curve;
  FinetuneRequest request;
  bool dtype_given = false;
};

int layer_number(const std::string_view text, const std::string& item) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw UsageError("--train-layers", fmt::format("\"{}\" is no layer, range of layers or head", item),
                     "write it as 8-11,head");
  return value;
}

// "8-11,head" → layers 8, 9, 10, 11 and the head.
void parse_train_layers(const std::string& text, FinetuneRequest& request) {
  if (text.empty()) return;
  request.train_head = false;
  for (const std::string& item : CLI::detail::split(text, ',')) {
    if (item == "head") {
      request.train_head = true;
      continue;
    }
    const auto dash = item.find('-');
    const int first = layer_number(std::string_view(item).substr(0, dash), item);
    const int last =
        dash == std::string::npos ? first : layer_number(std::string_view(item).substr(dash + 1), item);
    if (last < first || last > 10'000)
      throw UsageError("--train-layers", fmt::format("\"{}\" is no range of layers", item),
                       "write it as 8-11,head");
    for (int layer = first; layer <= last; ++layer) request.trained_layers.push_back(layer);
  }
  if (request.trained_layers.empty())
    throw UsageError("--train-layers", "names no layer", "write it as 8-11,head");
}

void run(FinetuneOptions& options, const std::string& command_line) {
  const RunRequest run = make_request(options.common, InputKind::image);
  FinetuneRequest& request = options.request;
  parse_train_layers(options.train_layers, request);
  request.model_folder = run.model_folder;
  request.adapters = run.adapters;
  request.schedule = run.schedule;
  request.execution = run.execution;
  if (!options.dtype_given) request.execution.dtype = "auto";
  request.data = options.data;
  request.validation = options.validation;
  request.labels = options.labels;
  if (!options.classes.empty()) request.classes = names_or_file(options.classes, "--classes");
  request.output = options.output;
  request.command = command_line;
  TrainingOutcome outcome;
  {
    TrainingDisplay display;
    outcome = finetune(request, display.observer(), display.stop());
  }
  if (!options.curve.empty()) write_curve(options.curve, outcome);
  print_outcome(outcome, options.common.json);
}

} // namespace

void add_finetune_command(CLI::App& program, const std::string& command_line) {
  auto* command = program.add_subcommand(
      "finetune", "train chosen layers and the classifier on an image folder, with any schedule of kernels");
  const auto options = std::make_shared<FinetuneOptions>();
  add_common_options(*command, options->common);
  FinetuneRequest& request = options->request;
  command->add_option("--data", options->data, "a folder with a sub-folder of pictures per class")
      ->required();
  command->add_option("-o,--output", options->output, "the adapter to write (safetensors)")->required();
  command->add_option("--validation", options->validation,
                      "the same, held out (default: a share of the data)");
  command->add_option("--validation-share", request.validation_share)->capture_default_str();
  command->add_option("--labels", options->labels, "TSV: sub-folder, label");
  command->add_option(
      "--classes", options->classes,
      "sub-folders to use: a comma list, or a file with one a line (default: those the classifier "
      "knows, or all)");
  command->add_option(
      "--train-layers", options->train_layers,
      "such as 8-11,head (default: what the schedule replaces, or the last four, and the head)");
  command->add_option("--images-per-class", request.images_per_class, "at most (default: all)")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--copies", request.copies,
                   "cached versions of a picture: itself, then crops, odd ones mirrored")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--epochs", request.epochs)->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--batch", request.batch)->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--learning-rate", request.learning_rate, "peak; warm-up, then a cosine to zero")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--weight-decay", request.weight_decay)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--label-smoothing", request.label_smoothing)
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--mixup", request.mixup, "α of the Beta distribution; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--curve", options->curve, "write the loss of every step as CSV");
  command->add_flag("--resume", request.resume, "go on from the checkpoint beside the output");
  command->callback([options, command, command_line] {
    options->dtype_given = command->count("--dtype") > 0;
    run(*options, command_line);
  });
}

} // namespace hydrascope::app
