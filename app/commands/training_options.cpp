#include "app/commands/training_options.h"

#include <chrono>

#include "app/commands/training_progress.h"
#include "engine/training/world.h"

namespace hydrascope::app {
void add_training_options(CLI::App& command, TrainingSettings& settings, std::string& curve) {
  command
      .add_option("-o,--output", settings.output,
                  "the adapter to write (safetensors); checkpoints go beside it")
      ->required();
  command.add_option("--epochs", settings.epochs, "at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--batch", settings.batch)->check(CLI::PositiveNumber)->capture_default_str();
  command.add_option("--learning-rate,--lr", settings.learning_rate)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--validation-share", settings.validation_share, "share of the items that is held out")
      ->capture_default_str();
  command
      .add_option("--validate-every", settings.validate_every,
                  "measure on the held-out items after so many steps, too (0: after each epoch only)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      .add_option("--patience", settings.patience,
                  "stop after so many epochs that made it no better (0: never)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--checkpoint-seconds", settings.checkpoint_seconds, "how often the state is kept")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--curve", curve, "write the loss of every step as CSV");
  command.add_flag("--resume", settings.resume, "go on from the checkpoint beside the output");
}

TogetherTraining::TogetherTraining(TrainingSettings& settings)
    // While one still computes the features of its pictures the others wait.
    : group_(training::world_from_environment(), {.answer = std::chrono::minutes(30)}) {
  if (!group_.alone()) settings.group = &group_;
}

TrainingOutcome TogetherTraining::run(
    const std::function<TrainingOutcome(const TrainingObserver&, const std::stop_token&)>& training) const {
  TrainingDisplay display;
  return training(tells() ? display.observer() : TrainingObserver(), display.stop());
}

} // namespace hydrascope::app
