#include <memory>

#include "app/commands/command.h"
#include "app/commands/training_options.h"
#include "app/commands/training_progress.h"
#include "engine/plain/error.h"
#include "engine/training/option_texts.h"

namespace hydrascope::app {
namespace {

struct DistillOptions {
  CommonOptions common;
  std::vector<std::string> data;
  std::string chunk, curve;
  DistillRequest request;
};

void run(DistillOptions& options, const std::string& command_line) {
  const CommonOptions& common = options.common;
  if (!common.schedule.replace.empty() || !common.schedule.layers.empty())
    throw UsageError("--replace and --layers", "distill trains the maps of one kernel in all layers",
                     "use --kernel alone");
  DistillRequest& request = options.request;
  const std::string& kernel = common.schedule.kernel;
  // distill itself says why t2r is none of its kernels, whether or not the registry has it.
  if (kernel == "t2r" || kernel.starts_with("t2r:"))
    request.kernel.name = "t2r";
  else
    request.kernel = parse_kernel_spec(kernel);
  request.data.assign(options.data.begin(), options.data.end());
  const bool pictures = std::filesystem::is_directory(request.data.front());
  const RunRequest run = make_request(common, pictures ? InputKind::image : InputKind::text);
  const ChunkLengths chunk = parse_chunk_lengths(options.chunk);
  request.least_chunk = chunk.least;
  request.chunk = chunk.most;
  request.settings.model_folder = run.model_folder;
  request.settings.adapters = run.adapters;
  request.settings.execution = run.execution;
  request.settings.command = command_line;
  TogetherTraining together(request.settings);
  const TrainingOutcome outcome =
      together.run([&](const TrainingObserver& observer, const std::stop_token& stop) {
        return distill(request, observer, stop);
      });
  if (!together.tells()) return;
  if (!options.curve.empty()) write_curve(options.curve, outcome);
  print_outcome(outcome, common.json);
}

} // namespace

void add_distill_command(CLI::App& program, const std::string& command_line) {
  auto* command = program.add_subcommand(
      "distill", "train a kernel's feature maps to give softmax's attention weights (Hedgehog paper, A.3)");
  const auto options = std::make_shared<DistillOptions>();
  add_common_options(*command, options->common);
  DistillRequest& request = options->request;
  command->add_option("--data", options->data, "text: a text a line, or *.tsv with --column; images: folders")
      ->required()
      ->delimiter(',');
  add_training_options(*command, request.settings, options->curve);
  command->add_flag("--cosine", request.cosine,
                    "let the learning rate fall to 0 along a cosine (the paper keeps it constant)");
  command->add_option("--column", request.column, "column of *.tsv files, from 1")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--pair-column", request.pair_column, "*.tsv files: column of the second text (0: none)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--header", request.header, "skip the first line of *.tsv files");
  command->add_option(
      "--chunk", options->chunk,
      "plain texts: join lines and cut them to this many tokens, or 16-256: to random lengths");
  command->add_option("--limit", request.limit, "at most this many items of each file")
      ->check(CLI::NonNegativeNumber);
  command->callback([options, command_line] { run(*options, command_line); });
}

} // namespace hydrascope::app
