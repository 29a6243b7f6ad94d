#include "app/commands/training_options.h"

#include <charconv>
#include <chrono>
#include <string_view>

#include <fmt/format.h>

#include "app/commands/training_progress.h"
#include "engine/plain/error.h"
#include "engine/training/world.h"

namespace hydrascope::app {
namespace {

int whole_number(const std::string_view text, const char* option, const std::string& item,
                 const char* remedy) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw UsageError(option, fmt::format("\"{}\" is not what it takes", item), remedy);
  return value;
}

struct Range {
  int first = 0, last = 0;
};

// "8" or "8-11".
Range range_of(const std::string& item, const std::string& text, const char* option, const char* remedy) {
  const std::string_view view = item;
  const auto dash = view.find('-');
  Range range;
  range.first = whole_number(view.substr(0, dash), option, text, remedy);
  range.last = dash == std::string_view::npos ? range.first
                                              : whole_number(view.substr(dash + 1), option, text, remedy);
  if (range.last < range.first || range.last > 100'000)
    throw UsageError(option, fmt::format("\"{}\" is no range", item), remedy);
  return range;
}

} // namespace

void add_training_options(CLI::App& command, TrainingSettings& settings, std::string& curve,
                          const bool output_needed) {
  auto* output = command.add_option("-o,--output", settings.output,
                                    "the adapter to write (safetensors); checkpoints go beside it");
  if (output_needed) output->required();
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

TrainedParts parse_trained_parts(const std::string& text) {
  const char* const option = "--train-layers";
  const char* const remedy = "write it as 8-11,head or 10-11.attention,head";
  TrainedParts parts;
  parts.head = false;
  for (std::string item : CLI::detail::split(text, ',')) {
    if (item == "head") {
      parts.head = true;
      continue;
    }
    if (item == "embeddings") {
      parts.embeddings = true;
      continue;
    }
    constexpr std::string_view attention = ".attention";
    const bool only = item.ends_with(attention);
    if (only) item.resize(item.size() - attention.size());
    const Range range = range_of(item, text, option, remedy);
    for (int layer = range.first; layer <= range.last; ++layer)
      (only ? parts.attention : parts.layers).push_back(layer);
  }
  return parts;
}

ChunkLengths parse_chunk_lengths(const std::string& text) {
  if (text.empty()) return {};
  const Range range = range_of(text, text, "--chunk", "write it as 512 or 16-256");
  return {range.first == range.last ? 0 : range.first, range.last};
}

} // namespace hydrascope::app
