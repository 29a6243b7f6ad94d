// hydrascope distill and hydrascope finetune.
#include "app/commands/training.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <variant>
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
#include "engine/base/paths.h"
#include "engine/training/distributed/process_group.h"
#include "engine/training/loop/option_fields.h"

namespace hydrascope::app {
namespace {

void add_check(CLI::Option& added, const NumberCheck& check) {
  switch (check.kind) {
    case NumberCheck::Kind::any: return;
    case NumberCheck::Kind::positive: added.check(positive_number()); return;
    case NumberCheck::Kind::not_negative: added.check(non_negative_number()); return;
    case NumberCheck::Kind::within: added.check(number_within(check.least, check.most)); return;
  }
}

// Adds one option by the type of its value.
struct Adder {
  CLI::App& command;
  const TrainingOption& option;
  const std::string& help;
  bool shows_default; // the help names it where it depends on the data

  CLI::Option* operator()(bool& value) const { return command.add_flag(option.flags, value, help); }
  // A default of 0 means none, which the help says in words.
  CLI::Option* operator()(int& value) const { return add(value, option.always || value != 0); }
  CLI::Option* operator()(double& value) const { return add(value, true); }
  CLI::Option* operator()(std::string& value) const { return add(value, false); }
  CLI::Option* operator()(std::vector<std::string>& value) const { return add(value, false)->delimiter(','); }

private:
  template <typename T>
  CLI::Option* add(T& value, const bool show_default) const {
    CLI::Option* const added = command.add_option(option.flags, value, help);
    return show_default && shows_default ? added->capture_default_str() : added;
  }
};

// The default of a number: what follows in the help, "default: pictures 32, texts 8"; empty if it is the same
// for all data.
std::string defaults_text(const TrainingOption& option, const TrainingKind kind) {
  struct Data {
    const char* name = "";
    TrainingData data = {};
  };
  const std::array all{Data{"pictures", {InputKind::image}}, Data{"texts", {InputKind::text}},
                       Data{"decoders", {InputKind::text, true}}};
  std::vector<std::string> names, numbers;
  for (const auto& [name, data] : all) {
    if (!option.applies(kind, data.input)) continue;
    const OptionValue value = default_values(kind, data).value(option.key);
    if (std::holds_alternative<int>(value))
      numbers.push_back(fmt::format("{}", std::get<int>(value)));
    else if (std::holds_alternative<double>(value))
      numbers.push_back(fmt::format("{:g}", std::get<double>(value)));
    else
      return "";
    names.emplace_back(name);
  }
  std::string text;
  bool differ = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool as_before = i > 0 && numbers[i] == numbers[i - 1];
    differ = differ || (i > 0 && !as_before);
    const bool as_after = i + 1 < names.size() && numbers[i + 1] == numbers[i];
    text += as_before ? " and " : i > 0 ? ", " : "";
    text += names[i];
    if (!as_after) text += " " + numbers[i];
  }
  return differ ? "default: " + text : "";
}

} // namespace

void add_training_options(CLI::App& command, const TrainingKind kind, OptionValues& values) {
  for (const TrainingOption* option : help_options(kind)) {
    const auto of_any_input = [&](const auto& text) { return text.of(kind, InputKind::image); };
    const std::string by_data = defaults_text(*option, kind);
    std::string help = of_any_input(option->help);
    if (!by_data.empty()) help += (help.empty() ? "" : "; ") + by_data;
    CLI::Option* const added =
        std::visit(Adder{command, *option, help, by_data.empty()}, values.value(option->key));
    add_check(*added, of_any_input(option->check));
    // The model's options are beside those that every command has.
    const OptionGroup group = group_of(option->section);
    added->required(option->required)
        ->group(group == OptionGroup::model ? "Model and kernels" : group_title(group));
  }
}

namespace {

// The outcome as JSON on standard output, or as a sentence.
void print_outcome(const TrainingOutcome& outcome, const bool json) {
  if (json) {
    const HeldOut &before = outcome.before, &best = outcome.held_out;
    const auto number_if = [](const bool applies, const double value) {
      return applies ? nlohmann::json(value) : nlohmann::json();
    };
    const bool distils = best.measure == HeldOutMeasure::divergence;
    const bool predicts = best.measure == HeldOutMeasure::perplexity;
    const bool classifies = best.measure == HeldOutMeasure::accuracy;
    const bool fits = best.measure == HeldOutMeasure::correlation;
    const bool two = classifies && outcome.adapter.classes.size() == 2;
    const nlohmann::json document = {
        {"adapter", outcome.adapter.path.string()},
        {"hash", outcome.adapter.hash},
        {"base", outcome.adapter.base},
        {"over", outcome.adapter.over},
        {"role", outcome.adapter.role},
        {"version", outcome.adapter.version},
        {"data_hash", outcome.adapter.data_hash},
        {"steps", outcome.steps},
        {"loss", outcome.final_loss},
        {"validation_loss", best.loss},
        {"perplexity", number_if(predicts, best.perplexity)},
        {"perplexity_before", number_if(predicts, before.perplexity)},
        {"accuracy", number_if(classifies, best.accuracy)},
        {"accuracy_before", number_if(classifies, before.accuracy)},
        {"last_accuracy", number_if(classifies, last_validation(outcome).accuracy)},
        {"constant_answer", number_if(classifies, best.constant_answer)},
        {"matthews", number_if(two, best.matthews)},
        {"f1", number_if(two, best.f1)},
        {"pearson", number_if(fits, best.pearson)},
        {"spearman", number_if(fits, best.spearman)},
        {"kl", number_if(distils, best.divergence)},
        {"kl_before", number_if(distils, before.divergence)},
        {"notes", outcome.notes}};
    fmt::print("{}\n", text_of_json(document, 2));
    return;
  }
  fmt::print("{}: {} steps, loss {:.4f}, held-out loss {:.4f}", outcome.adapter.path.string(), outcome.steps,
             outcome.final_loss, outcome.held_out.loss);
  const HeldOut &before = outcome.before, &best = outcome.held_out;
  switch (best.measure) {
    case HeldOutMeasure::divergence:
      fmt::print(", held-out KL {:.4f} nats ({:.4f} before)", best.divergence, before.divergence);
      break;
    case HeldOutMeasure::perplexity:
      fmt::print(", held-out perplexity {:.4g} ({:.4g} before)", best.perplexity, before.perplexity);
      break;
    case HeldOutMeasure::correlation:
      fmt::print(", held-out Pearson {:.4f}, Spearman {:.4f} ({:.4f}, {:.4f} before)", best.pearson,
                 best.spearman, before.pearson, before.spearman);
      break;
    case HeldOutMeasure::accuracy:
      fmt::print(", held-out top-1 {:.2f} % ({:.2f} before; {:.2f} for always the commonest class)",
                 100 * best.accuracy, 100 * before.accuracy, 100 * best.constant_answer);
      if (outcome.adapter.classes.size() == 2)
        fmt::print(", Matthews {:.4f}, F1 {:.4f}", best.matthews, best.f1);
  }
  fmt::print("\n");
}

// A training in one process, or in one of several that torchrun, srun or mpirun started. Rank 0 alone shows
// progress and prints the outcome.
class TrainingProcess {
public:
  // Connects to the other processes and sets the settings' group. Others wait while one still computes the
  // features of its pictures.
  explicit TrainingProcess(TrainingSettings& settings)
      : TrainingProcess(settings, training::world_from_environment()) {}

  // Writes the curve where the settings name one. Throws what the training throws.
  void run(const std::function<TrainingOutcome(const TrainingObserver&, const std::stop_token&)>& training,
           const bool json) const {
    const bool reports = group_.rank() == 0;
    TrainingOutcome outcome;
    {
      TrainingDisplay display;
      outcome = training(reports ? display.observer() : TrainingObserver(), display.stop());
    }
    if (!reports) return;
    if (!settings_.curve.empty()) write_curve(settings_.curve, outcome);
    check_not_stopped("training", outcome, settings_.output);
    print_outcome(outcome, json);
  }

private:
  TrainingProcess(TrainingSettings& settings, const training::WorldInfo& world)
      : group_(world, {.answer = std::chrono::minutes(30)}), settings_(settings) {
    if (group_.alone()) return;
    settings.group = &group_;
    settings.execution.device = training::device_of_process(settings.execution.device, world);
  }

  training::ProcessGroup group_;
  const TrainingSettings& settings_;
};

// The options that a command line gives, by key.
OptionValues given_values(const CLI::App& command, const TrainingKind kind, const OptionValues& values) {
  OptionValues given;
  for (const TrainingOption* option : help_options(kind))
    if (command.count(option->name()) > 0) given.set(option->key, values.value(option->key));
  return given;
}

// Throws UsageError for options of pictures that are given for texts.
void check_given(const OptionValues& given, const TrainingKind kind, const InputKind input) {
  if (input != InputKind::text) return;
  for (const TrainingOption* option : help_options(kind))
    if (given.contains(option->key) && !option->applies(kind, input))
      throw UsageError(option->name(), "is for pictures", "leave it out");
}

struct DistillOptions {
  CommonOptions common;
  OptionValues values = default_values(TrainingKind::distill, {}); // after the parse those that were given
};

void run(const DistillOptions& options, const std::string& command_line) {
  const CommonOptions& common = options.common;
  if (!common.schedule.replace.empty() || !common.schedule.layers.empty())
    throw UsageError("--replace and --layers", "distill trains the maps of one kernel in all layers",
                     "use --kernel alone");
  TrainingRequest training = DistillRequest{};
  auto& request = std::get<DistillRequest>(training);
  const std::string& kernel = common.schedule.kernel;
  // distill() refuses t2r with a reason, whether or not it is registered.
  if (kernel == "t2r" || kernel.starts_with("t2r:"))
    request.kernel.name = "t2r";
  else
    request.kernel = parse_kernel_spec(kernel);
  OptionValues values = options.values;
  std::vector<std::string> data;
  if (values.contains("data")) data = values.get<std::vector<std::string>>("data");
  if (data.empty() && !common.capture.empty()) data = {common.capture};
  if (data.empty()) throw UsageError("--data", "is missing", "name texts, folders of pictures, or captures");
  values.set("data", data);
  const bool pictures = std::filesystem::is_directory(data.front());
  const RunRequest run =
      make_request(with_capture_of(common, data), pictures ? InputKind::image : InputKind::text);
  const ModelInfo model = read_model_info(run.model_folder);
  check_given(options.values, TrainingKind::distill, model.input);
  set_options(training, default_values(TrainingKind::distill, {model.input, model.causal}));
  set_options(training, values);
  request.settings.model_folder = run.model_folder;
  request.settings.adapters = run.adapters;
  request.settings.execution = run.execution;
  request.settings.command = command_line;
  TrainingProcess(request.settings)
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
  command->get_option("--data")->required(false); // --capture will do
  command->callback([options, command, command_line] {
    options->values = given_values(*command, TrainingKind::distill, options->values);
    run(*options, command_line);
  });
}

namespace {

struct FinetuneOptions {
  CommonOptions common;
  OptionValues values = default_values(TrainingKind::finetune, {}); // after the parse those that were given
  bool dtype_given = false;
};

void run(const FinetuneOptions& options, const std::string& command_line) {
  const auto& data = options.values.get<std::vector<std::string>>("data");
  const bool pictures = std::filesystem::is_directory(data.front());
  CommonOptions common = options.common;
  const Objective asked = options.values.contains("objective")
                              ? parse_objective(options.values.get<std::string>("objective"))
                              : Objective::by_model;
  if (asked == Objective::next_token && common.model.empty()) common.model = "smollm2";
  const RunRequest run = make_request(common, pictures ? InputKind::image : InputKind::text);
  TrainingRequest training = FinetuneRequest{};
  const ModelInfo model = read_model_info(run.model_folder);
  check_given(options.values, TrainingKind::finetune, model.input);
  const bool next_token = objective_for(asked, model) == Objective::next_token;
  set_options(training, default_values(TrainingKind::finetune, {model.input, next_token}));
  set_options(training, options.values);
  auto& request = std::get<FinetuneRequest>(training);
  TrainingSettings& settings = request.settings;
  settings.model_folder = run.model_folder;
  settings.adapters = run.adapters;
  request.schedule = run.schedule;
  settings.execution = run.execution;
  if (!options.dtype_given) settings.execution.dtype = "auto";
  settings.command = command_line;
  TrainingProcess(settings).run(
      [&](const TrainingObserver& observer, const std::stop_token& stop) {
        return finetune(request, observer, stop);
      },
      options.common.json);
}

} // namespace

void add_finetune_command(CLI::App& program, const std::string& command_line) {
  auto* command = program.add_subcommand("finetune",
                                         "train chosen layers and the classifier on labelled pictures or "
                                         "texts, or a decoder on running text, with "
                                         "any schedule");
  const auto options = std::make_shared<FinetuneOptions>();
  add_common_options(*command, options->common, CaptureUse::refused);
  add_training_options(*command, TrainingKind::finetune, options->values);
  command->callback([options, command, command_line] {
    options->dtype_given = command->count("--dtype") > 0;
    options->values = given_values(*command, TrainingKind::finetune, options->values);
    run(*options, command_line);
  });
}

} // namespace hydrascope::app
