#include <memory>

#include "app/commands/command.h"
#include "app/commands/training_options.h"
#include "app/commands/training_progress.h"
#include "engine/training/option_texts.h"

namespace hydrascope::app {
namespace {

struct FinetuneOptions {
  CommonOptions common;
  std::string data, validation, labels, classes, train_layers, lora, curve;
  FinetuneRequest request;
  bool dtype_given = false;
};

void run(FinetuneOptions& options, const std::string& command_line) {
  const bool pictures = std::filesystem::is_directory(options.data);
  const RunRequest run = make_request(options.common, pictures ? InputKind::image : InputKind::text);
  FinetuneRequest& request = options.request;
  TrainingSettings& settings = request.settings;
  if (!options.train_layers.empty()) request.trained = parse_trained_parts(options.train_layers);
  if (!options.lora.empty()) request.low_rank = parse_low_rank(options.lora);
  settings.model_folder = run.model_folder;
  settings.adapters = run.adapters;
  request.schedule = run.schedule;
  settings.execution = run.execution;
  if (!options.dtype_given) settings.execution.dtype = "auto";
  request.data = options.data;
  request.validation = options.validation;
  request.labels = options.labels;
  if (!options.classes.empty()) request.classes = names_or_file(options.classes, "--classes");
  settings.command = command_line;
  TogetherTraining together(settings);
  const TrainingOutcome outcome =
      together.run([&](const TrainingObserver& observer, const std::stop_token& stop) {
        return finetune(request, observer, stop);
      });
  if (!together.tells()) return;
  if (!options.curve.empty()) write_curve(options.curve, outcome);
  print_outcome(outcome, options.common.json);
}

} // namespace

void add_finetune_command(CLI::App& program, const std::string& command_line) {
  auto* command = program.add_subcommand(
      "finetune", "train chosen layers and the classifier on labelled pictures or texts, with any schedule");
  const auto options = std::make_shared<FinetuneOptions>();
  add_common_options(*command, options->common);
  FinetuneRequest& request = options->request;
  command
      ->add_option("--data", options->data,
                   "a folder with a sub-folder of pictures per class, or a tab-separated table of texts")
      ->required();
  add_training_options(*command, request.settings, options->curve);
  command->add_option("--validation", options->validation,
                      "the same, held out (default: a share of the data)");
  command->add_option("--column", request.columns.text, "tables: column of the text, from 1")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--pair-column", request.columns.pair, "tables: column of the second text (0: none)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--label-column", request.columns.label, "tables: column of the label")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--header", request.header, "tables: skip the first line");
  command->add_option("--limit", request.limit, "tables: at most so many lines")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--labels", options->labels, "TSV: sub-folder or label, name to show");
  command->add_option("--classes", options->classes,
                      "sub-folders or labels to use: a comma list, or a file with one a line (default: those "
                      "the classifier knows, or all)");
  command->add_option(
      "--train-layers", options->train_layers,
      "such as 8-11,head or 10-11.attention (default: what the schedule replaces, or the last "
      "four, and the head)");
  command->add_option(
      "--lora", options->lora,
      "such as rank=8,alpha=16: of these layers the attention's four projections alone, each by a "
      "low-rank update (the adapter holds what they become)");
  command->add_option("--images-per-class", request.images_per_class, "at most (default: all)")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--copies", request.copies,
                   "cached versions of a picture: itself, then augmented ones; 0: a new one in every step")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--crop", request.augmentation.smallest_crop,
                   "share of the picture that a random crop keeps at least")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  command
      ->add_option("--color-jitter", request.augmentation.color_jitter,
                   "by how much brightness, contrast and saturation change at most")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_flag("!--no-flip", request.augmentation.flip, "no mirrored copies");
  command->add_option("--warmup", request.warmup, "share of the steps over which the learning rate rises")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--weight-decay", request.weight_decay)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--label-smoothing", request.label_smoothing)
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--mixup", request.mixup,
                   "pictures: α of the Beta distribution by which two are mixed; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option(
          "--distillation-alpha", request.distillation_alpha,
          "share of the loss that is the divergence from the same model as it was trained with softmax "
          "(DeiT's soft distillation); 0: labels alone")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--distillation-tau", request.distillation_tau, "its temperature")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--distillation-hidden", request.distillation_hidden,
                   "times this the loss has the distance of the trained blocks' hidden states from that "
                   "model's, too (TinyBERT); 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--patch-dropout", request.patch_dropout,
                   "pictures: share of the patches that a step leaves out (PatchDropout); 0: none")
      ->check(CLI::Range(0.0, 0.95))
      ->capture_default_str();
  command->callback([options, command, command_line] {
    options->dtype_given = command->count("--dtype") > 0;
    run(*options, command_line);
  });
}

} // namespace hydrascope::app
