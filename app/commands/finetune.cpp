#include <memory>

#include "app/commands/command.h"
#include "app/commands/training_options.h"

namespace hydrascope::app {
namespace {

struct FinetuneOptions {
  CommonOptions common;
  OptionValues values = option_values(FinetuneRequest{});
  bool dtype_given = false;
};

void run(const FinetuneOptions& options, const std::string& command_line) {
  const bool pictures = std::filesystem::is_directory(options.values.get<std::string>("data"));
  const RunRequest run = make_request(options.common, pictures ? InputKind::image : InputKind::text);
  TrainingRequest training = FinetuneRequest{};
  set_options(training, options.values);
  auto& request = std::get<FinetuneRequest>(training);
  TrainingSettings& settings = request.settings;
  settings.model_folder = run.model_folder;
  settings.adapters = run.adapters;
  request.schedule = run.schedule;
  settings.execution = run.execution;
  if (!options.dtype_given) settings.execution.dtype = "auto";
  settings.command = command_line;
  TogetherTraining(settings).run(
      [&](const TrainingObserver& observer, const std::stop_token& stop) {
        return finetune(request, observer, stop);
      },
      options.common.json);
}

} // namespace

void add_finetune_command(CLI::App& program, const std::string& command_line) {
  auto* command = program.add_subcommand(
      "finetune", "train chosen layers and the classifier on labelled pictures or texts, with any schedule");
  const auto options = std::make_shared<FinetuneOptions>();
  add_common_options(*command, options->common);
  add_training_options(*command, TrainingKind::finetune, options->values);
  command->callback([options, command, command_line] {
    options->dtype_given = command->count("--dtype") > 0;
    run(*options, command_line);
  });
}

} // namespace hydrascope::app
