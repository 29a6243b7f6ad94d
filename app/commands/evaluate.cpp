#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/command.h"
#include "app/commands/training_progress.h"
#include "engine/training/evaluate.h"

namespace hydrascope::app {
namespace {

struct EvaluateOptions {
  CommonOptions common;
  std::string data, classes;
  EvaluateRequest request;
};

void run(EvaluateOptions& options) {
  const RunRequest run = make_request(options.common, InputKind::image);
  EvaluateRequest& request = options.request;
  request.model_folder = run.model_folder;
  request.adapters = run.adapters;
  request.schedule = run.schedule;
  request.execution = run.execution;
  request.data = options.data;
  if (!options.classes.empty()) request.classes = names_or_file(options.classes, "--classes");
  EvaluateOutcome outcome;
  {
    TrainingDisplay display;
    outcome = evaluate(request, display.observer(), display.stop());
  }
  if (options.common.json) {
    auto adapters = nlohmann::json::array();
    for (const auto& adapter : outcome.adapters)
      adapters.push_back({{"name", adapter.name}, {"hash", adapter.hash}});
    const nlohmann::json document = {{"items", outcome.items},
                                     {"top1", outcome.top1},
                                     {"top5", outcome.top5},
                                     {"adapters", adapters},
                                     {"notes", outcome.notes}};
    fmt::print("{}\n", document.dump(2));
    return;
  }
  fmt::print("pictures  {}\ntop-1     {:.2f} %\ntop-5     {:.2f} %\n", outcome.items, 100 * outcome.top1,
             100 * outcome.top5);
}

} // namespace

void add_evaluate_command(CLI::App& program) {
  auto* command = program.add_subcommand("evaluate", "top-1 and top-5 on an image folder");
  const auto options = std::make_shared<EvaluateOptions>();
  add_common_options(*command, options->common);
  command->add_option("--data", options->data, "a folder with a sub-folder of pictures per class")
      ->required();
  command->add_option("--classes", options->classes,
                      "sub-folders to use: a comma list, or a file with one a line");
  command->add_option("--images-per-class", options->request.images_per_class, "at most (default: all)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--batch", options->request.batch)->check(CLI::PositiveNumber)->capture_default_str();
  command->callback([options] { run(*options); });
}

} // namespace hydrascope::app
