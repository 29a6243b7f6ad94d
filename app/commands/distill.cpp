#include <memory>

#include "app/commands/command.h"
#include "app/commands/training_progress.h"
#include "engine/plain/error.h"

namespace hydrascope::app {
namespace {

struct DistillOptions {
  CommonOptions common;
  std::vector<std::string> data;
  std::string output, curve;
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
  request.model_folder = run.model_folder;
  request.adapters = run.adapters;
  request.execution = run.execution;
  request.output = options.output;
  request.command = command_line;
  TrainingOutcome outcome;
  {
    TrainingDisplay display;
    outcome = distill(request, display.observer(), display.stop());
  }
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
  command->add_option("-o,--output", options->output, "the adapter to write (safetensors)")->required();
  command->add_option("--column", request.column, "column of *.tsv files, from 1")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--header", request.header, "skip the first line of *.tsv files");
  command->add_option("--chunk", request.chunk, "join lines and cut them to this many tokens")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--limit", request.limit, "at most this many items of each file")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--epochs", request.epochs, "at most; stops when the held-out loss gets no better")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--batch", request.batch)->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--learning-rate", request.learning_rate)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--validation-share", request.validation_share, "share of the items that is held out")
      ->capture_default_str();
  command->add_option("--curve", options->curve, "write the loss of every step as CSV");
  command->add_flag("--resume", request.resume, "go on from the checkpoint beside the output");
  command->callback([options, command_line] { run(*options, command_line); });
}

} // namespace hydrascope::app
