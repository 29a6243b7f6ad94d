#include "app/commands/training_options.h"

#include <chrono>

#include "app/commands/training_progress.h"
#include "engine/training/distributed/world.h"

namespace hydrascope::app {
namespace {

void add_check(CLI::Option& added, const NumberCheck& check) {
  switch (check.kind) {
    case NumberCheck::Kind::any: return;
    case NumberCheck::Kind::positive: added.check(CLI::PositiveNumber); return;
    case NumberCheck::Kind::not_negative: added.check(CLI::NonNegativeNumber); return;
    case NumberCheck::Kind::within: added.check(CLI::Range(check.least, check.most)); return;
  }
}

// Adds one option by the type of its value.
struct Adder {
  CLI::App& command;
  const TrainingOption& option;
  const char* help;

  CLI::Option* operator()(bool& value) const { return command.add_flag(option.flags, value, help); }
  // 0 of those that need not be set stands for none, which the help says in words.
  CLI::Option* operator()(int& value) const { return add(value, option.always || value != 0); }
  CLI::Option* operator()(double& value) const { return add(value, true); }
  CLI::Option* operator()(std::string& value) const { return add(value, false); }
  CLI::Option* operator()(std::vector<std::string>& value) const { return add(value, false)->delimiter(','); }

private:
  template <typename T>
  CLI::Option* add(T& value, const bool show_default) const {
    CLI::Option* const added = command.add_option(option.flags, value, help);
    return show_default ? added->capture_default_str() : added;
  }
};

} // namespace

void add_training_options(CLI::App& command, const TrainingKind kind, OptionValues& values) {
  for (const TrainingOption& option : training_options()) {
    if (!option.applies(kind)) continue;
    const auto of_any_input = [&](const auto& text) { return text.of(kind, InputKind::image); };
    CLI::Option* const added =
        std::visit(Adder{command, option, of_any_input(option.help)}, values.value(option.key));
    add_check(*added, of_any_input(option.check));
    added->required(option.required);
  }
}

TogetherTraining::TogetherTraining(TrainingSettings& settings)
    // While one still computes the features of its pictures the others wait.
    : group_(training::world_from_environment(), {.answer = std::chrono::minutes(30)}), settings_(settings) {
  if (!group_.alone()) settings.group = &group_;
}

void TogetherTraining::run(
    const std::function<TrainingOutcome(const TrainingObserver&, const std::stop_token&)>& training,
    const bool json) const {
  const bool tells = group_.rank() == 0;
  TrainingOutcome outcome;
  {
    TrainingDisplay display;
    outcome = training(tells ? display.observer() : TrainingObserver(), display.stop());
  }
  if (!tells) return;
  if (!settings_.curve.empty()) write_curve(settings_.curve, outcome);
  print_outcome(outcome, json);
}

} // namespace hydrascope::app
