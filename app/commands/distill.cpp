#include <memory>

#include "app/commands/command.h"
#include "app/commands/training_options.h"
#include "engine/base/error.h"

namespace hydrascope::app {
namespace {

struct DistillOptions {
  CommonOptions common;
  OptionValues values = option_values(DistillRequest{});
};

void run(const DistillOptions& options, const std::string& command_line) {
  const CommonOptions& common = options.common;
  if (!common.schedule.replace.empty() || !common.schedule.layers.empty())
    throw UsageError("--replace and --layers", "distill trains the maps of one kernel in all layers",
                     "use --kernel alone");
  TrainingRequest training = DistillRequest{};
  auto& request = std::get<DistillRequest>(training);
  const std::string& kernel = common.schedule.kernel;
  // distill itself says why t2r is none of its kernels, whether or not the registry has it.
  if (kernel == "t2r" || kernel.starts_with("t2r:"))
    request.kernel.name = "t2r";
  else
    request.kernel = parse_kernel_spec(kernel);
  const auto& data = options.values.get<std::vector<std::string>>("data");
  const bool pictures = std::filesystem::is_directory(data.front());
  const RunRequest run = make_request(common, pictures ? InputKind::image : InputKind::text);
  set_options(training, options.values);
  request.settings.model_folder = run.model_folder;
  request.settings.adapters = run.adapters;
  request.settings.execution = run.execution;
  request.settings.command = command_line;
  TogetherTraining(request.settings)
      .run([&](const TrainingObserver& observer,
               const std::stop_token& stop) { return distill(request, observer, stop); },
           common.json);
}

} // namespace

void add_distill_command(CLI::App& program, const std::string& command_line) {
  auto* command = program.add_subcommand(
      "distill", "train a kernel's feature maps to give softmax's attention weights (Hedgehog paper, A.3)");
  const auto options = std::make_shared<DistillOptions>();
  add_common_options(*command, options->common);
  add_training_options(*command, TrainingKind::distill, options->values);
  command->callback([options, command_line] { run(*options, command_line); });
}

} // namespace hydrascope::app
