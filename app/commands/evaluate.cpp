#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "app/commands/training_display.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/measure/answers.h"
#include "engine/measure/perplexity.h"
#include "engine/training/loop/option_fields.h"
#include "engine/training/tasks/evaluate.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;

struct EvaluateOptions {
  CommonOptions common;
  std::string data, classes, boxes;
  EvaluateRequest request;
  bool perplexity = false, rouge = false;
  PerplexityRequest windows;
  AnswersRequest answers;
};

ordered_json adapters_json(const std::vector<AdapterInfo>& adapters) {
  ordered_json list = ordered_json::array();
  for (const auto& adapter : adapters) list.push_back({{"name", adapter.name}, {"hash", adapter.hash}});
  return list;
}

void print_perplexity(const PerplexityOutcome& outcome, const bool json) {
  if (json) {
    const ordered_json document = {{"tokens", outcome.tokens},
                                   {"nll", outcome.nll},
                                   {"standard_error", number_or_null(outcome.standard_error)},
                                   {"perplexity", outcome.perplexity},
                                   {"windows", outcome.windows},
                                   {"losses", outcome.losses},
                                   {"device", outcome.device},
                                   {"dtype", outcome.dtype},
                                   {"adapters", adapters_json(outcome.adapters)},
                                   {"notes", outcome.notes}};
    fmt::print("{}\n", text_of_json(document, 2));
    return;
  }
  const std::string spread =
      outcome.windows == 1 ? " (one window)" : fmt::format(", ± {:.4f} over windows", outcome.standard_error);
  print_table({{"perplexity", fmt::format("{:.2f}", outcome.perplexity), ""},
               {"loss", fmt::format("{:.4f}", outcome.nll), "nats a token" + spread},
               {"tokens", std::to_string(outcome.tokens), "scored"},
               {"windows", std::to_string(outcome.windows), outcome.schedule.summary()}},
              "lrl");
}

void run_perplexity(EvaluateOptions& options) {
  if (options.request.limit > 0)
    throw UsageError("--limit", "counts pictures and texts, but --perplexity reads one text",
                     "give --tokens or --characters");
  CommonOptions common = options.common;
  if (common.model.empty()) common.model = "smollm2";
  const RunRequest run = make_request(common, InputKind::text);
  PerplexityRequest& request = options.windows;
  request.model_folder = run.model_folder;
  request.adapters = run.adapters;
  request.schedule = run.schedule;
  request.execution = run.execution;
  request.data = options.data;
  PerplexityOutcome outcome;
  {
    ProgressBar bar("windows");
    outcome = measure_perplexity(
        request, [&](const std::int64_t done, const std::int64_t total) { bar.show(done, total); });
  }
  print_notes(outcome.notes);
  print_perplexity(outcome, options.common.json);
}

void print_answers(const AnswersOutcome& outcome, const bool json) {
  if (json) {
    const ordered_json document = {{"rouge1", outcome.mean.rouge1},
                                   {"rouge2", outcome.mean.rouge2},
                                   {"rougeL", outcome.mean.rougeL},
                                   {"items", outcome.items},
                                   {"device", outcome.device},
                                   {"dtype", outcome.dtype},
                                   {"adapters", adapters_json(outcome.adapters)},
                                   {"notes", outcome.notes}};
    fmt::print("{}\n", text_of_json(document, 2));
    return;
  }
  const auto score = [](const double share) { return fmt::format("{:.2f}", 100 * share); };
  print_table({{"ROUGE-1", score(outcome.mean.rouge1), "F1 of words, %"},
               {"ROUGE-2", score(outcome.mean.rouge2), "of pairs of words"},
               {"ROUGE-L", score(outcome.mean.rougeL), "of the longest common subsequence"},
               {"answers", std::to_string(outcome.items), outcome.schedule.summary()}},
              "lrl");
}

void run_answers(EvaluateOptions& options) {
  CommonOptions common = options.common;
  if (common.model.empty()) common.model = "smollm2";
  const RunRequest run = make_request(common, InputKind::text);
  AnswersRequest& request = options.answers;
  request.model_folder = run.model_folder;
  request.adapters = run.adapters;
  request.schedule = run.schedule;
  request.execution = run.execution;
  request.data = options.data;
  request.column = options.request.columns.text;
  request.header = options.request.header;
  request.limit = options.request.limit;
  if (options.windows.limit > 0) request.tokens = options.windows.limit;
  AnswersOutcome outcome;
  {
    ProgressBar bar("answers");
    outcome = measure_answers(
        request, [&](const std::int64_t done, const std::int64_t total) { bar.show(done, total); });
  }
  print_notes(outcome.notes);
  print_answers(outcome, options.common.json);
}

ordered_json outcome_json(const EvaluateOutcome& outcome) {
  ordered_json pointing;
  const bool numbers = outcome.pearson.has_value();
  ordered_json document = {
      {"items", outcome.items},
      {"top1", numbers ? ordered_json() : ordered_json(outcome.top1)},
      {"top5", numbers ? ordered_json() : ordered_json(outcome.top5)},
      {"constant_answer", numbers ? ordered_json() : ordered_json(outcome.constant_answer)},
      {"matthews", number_or_null(outcome.matthews)},
      {"f1", number_or_null(outcome.f1)}};
  if (outcome.f1) document["f1_of"] = outcome.f1_of;
  if (numbers) {
    document["pearson"] = *outcome.pearson;
    document["spearman"] = number_or_null(outcome.spearman);
    document["squared_error"] = number_or_null(outcome.squared_error);
  }
  if (outcome.pointing) {
    for (const auto& method : outcome.pointing->methods) pointing[method.name] = method.share;
    document["pointing_items"] = outcome.pointing->items;
    document["pointing_empty"] = outcome.pointing->empty_focus_maps;
  }
  document["pointing"] = pointing;
  if (outcome.curves) {
    const auto with_error = [](const MeanWithError& one) {
      return ordered_json{{"mean", one.mean}, {"standard_error", one.standard_error}};
    };
    for (const auto& method : outcome.curves->methods)
      document["curves"][method.name] = {{"deletion", with_error(method.deletion)},
                                         {"insertion", with_error(method.insertion)}};
    for (const auto& difference : outcome.curves->differences)
      document["curves_differences"].push_back({{"of", difference.of},
                                                {"from", difference.from},
                                                {"deletion", with_error(difference.deletion)},
                                                {"insertion", with_error(difference.insertion)}});
    document["curves_items"] = outcome.curves->items;
  }
  document["adapters"] = adapters_json(outcome.adapters);
  document["notes"] = outcome.notes;
  return document;
}

void print_outcome_table(const EvaluateOutcome& outcome, const bool texts) {
  const auto percent = [](const double share) { return fmt::format("{:.2f} %", 100 * share); };
  std::vector<std::vector<std::string>> rows = {
      {texts ? "texts" : "pictures", std::to_string(outcome.items), ""}};
  if (!outcome.pearson)
    rows.push_back({"top-1", percent(outcome.top1),
                    fmt::format("always the commonest class: {}", percent(outcome.constant_answer))});
  if (outcome.classes > 5) rows.push_back({"top-5", percent(outcome.top5), ""});
  if (outcome.matthews) rows.push_back({"Matthews", fmt::format("{:.4f}", *outcome.matthews), ""});
  if (outcome.f1) rows.push_back({"F1", fmt::format("{:.4f}", *outcome.f1), outcome.f1_of});
  if (outcome.pearson) {
    rows.push_back({"Pearson", fmt::format("{:.4f}", *outcome.pearson), "of predicted numbers and labels"});
    rows.push_back({"Spearman", fmt::format("{:.4f}", outcome.spearman.value_or(0)), "of their ranks"});
    rows.push_back({"squared error", fmt::format("{:.4g}", outcome.squared_error.value_or(0)), "mean"});
  }
  if (outcome.pointing) {
    rows.push_back({"pointing game", std::to_string(outcome.pointing->items), "pictures with a box"});
    for (const auto& method : outcome.pointing->methods)
      rows.push_back({"  " + method.name, percent(method.share), method.what});
  }
  print_table(rows, "lrl");
  if (!outcome.curves) return;
  const auto with_error = [](const MeanWithError& one) {
    return fmt::format("{:.4f} ± {:.4f}", one.mean, one.standard_error);
  };
  fmt::print(
      "\narea under the probability of the class while patches are hidden (deletion: less is better) or "
      "shown (insertion)\nin a map's order, over {} pictures; ±: standard error\n\n",
      outcome.curves->items);
  std::vector<std::vector<std::string>> areas = {{"map", "deletion", "insertion"}};
  for (const auto& method : outcome.curves->methods)
    areas.push_back({method.name, with_error(method.deletion), with_error(method.insertion)});
  areas.push_back({"differences, picture by picture", "", ""});
  for (const auto& difference : outcome.curves->differences)
    areas.push_back({fmt::format("{} − {}", difference.of, difference.from), with_error(difference.deletion),
                     with_error(difference.insertion)});
  print_table(areas, "lrr");
}

// What is not there would be taken for texts, and the message would be about their default model.
void require_data(const std::filesystem::path& data) {
  std::error_code failed;
  if (std::filesystem::exists(data, failed)) return;
  if (!failed) failed = std::make_error_code(std::errc::no_such_file_or_directory);
  throw Error(data.string(), failed.message(), "check the path and its permissions");
}

void run(EvaluateOptions& options) {
  require_data(options.data);
  if (options.perplexity) return run_perplexity(options);
  if (options.rouge) return run_answers(options);
  const bool texts = !std::filesystem::is_directory(options.data);
  const RunRequest run = make_request(options.common, texts ? InputKind::text : InputKind::image);
  EvaluateRequest& request = options.request;
  request.model_folder = run.model_folder;
  request.adapters = run.adapters;
  request.schedule = run.schedule;
  request.execution = run.execution;
  request.data = options.data;
  request.boxes = options.boxes;
  if (!options.classes.empty()) request.classes = names_or_file(options.classes, "--classes");
  EvaluateOutcome outcome;
  {
    TrainingDisplay display;
    outcome = evaluate(request, display.observer(), display.stop());
  }
  if (options.common.json)
    fmt::print("{}\n", text_of_json(outcome_json(outcome), 2));
  else
    print_outcome_table(outcome, texts);
}

} // namespace

void add_evaluate_command(CLI::App& program) {
  auto* command = program.add_subcommand(
      "evaluate",
      "top-1 and top-5 on an image folder, with --boxes the pointing game, with --curves deletion and "
      "insertion; accuracy, Matthews correlation and F1 on a labelled table of texts, Pearson's and "
      "Spearman's "
      "correlation where the model predicts a number; with --perplexity a decoder's on a text, with "
      "--rouge "
      "its answers to the prompts of a table");
  const auto options = std::make_shared<EvaluateOptions>();
  EvaluateRequest& request = options->request;
  add_common_options(*command, options->common, CaptureUse::refused);
  command
      ->add_option("--data", options->data,
                   "images: a folder with a sub-folder of pictures per class; text: a tab-separated file")
      ->required();
  command->add_option("--limit", request.limit, "at most: pictures taken evenly from all, the first texts")
      ->check(non_negative_number());
  CLI::Option* const batch =
      command
          ->add_option(
              "--batch", request.batch,
              "inputs that run together; perplexity: windows (default: as many as have 2,048 tokens)")
          ->check(positive_number())
          ->capture_default_str();
  command->add_option("--classes", options->classes,
                      "images: sub-folders to use: a comma list, or a file with one a line");
  command->add_option("--images-per-class", request.images_per_class, "images: at most (default: all)")
      ->check(non_negative_number());
  command->add_option("--boxes", options->boxes,
                      "images: plays the pointing game: whether the maximum of a map lies in the object's "
                      "box. TSV with the header image, class, x0, y0, x1, y1 (pixels, inclusive)");
  command
      ->add_option(
          "--curves", request.curve_steps,
          "images: the probability of the class while patches are hidden, or shown, in so many steps in "
          "the order of each map (deletion and insertion curves)")
      ->check(non_negative_number());
  command->add_option("--column", request.columns.text, "text: column of the texts, from 1")
      ->check(positive_number())
      ->capture_default_str();
  command->add_option("--pair-column", request.columns.pair, "text: column of the second texts of pairs")
      ->check(positive_number());
  command->add_option("--label-column", request.columns.label, "text: column of the labels")
      ->check(positive_number())
      ->capture_default_str();
  command->add_flag("--header", request.header, "text: skip the first line");
  command->add_flag("--perplexity", options->perplexity,
                    "decoders: how well each token of a text file is predicted from those before it");
  PerplexityRequest& windows = options->windows;
  command->add_option("--window", windows.window, "perplexity: tokens that are read together")
      ->check(positive_number())
      ->capture_default_str();
  command
      ->add_option(
          "--stride", windows.stride,
          "perplexity: tokens from one window to the next (default: --window); of windows that overlap "
          "the new tokens are scored")
      ->check(non_negative_number());
  command
      ->add_option(
          "--tokens", windows.limit,
          "perplexity: the first tokens of the file (default: all); rouge: of an answer, at most (100)")
      ->check(non_negative_number());
  command
      ->add_option("--characters", windows.characters,
                   "perplexity: the first characters of the file (default: all)")
      ->check(non_negative_number());
  CLI::Option* const rouge =
      command->add_flag("--rouge", options->rouge,
                        "decoders: ROUGE-1, -2 and -L (F1) of greedy answers to the prompts of a table");
  rouge->excludes(command->get_option("--perplexity"));
  AnswersRequest& answers = options->answers;
  command->add_option("--answer-column", answers.answer_column, "rouge: column of the reference answers")
      ->check(positive_number())
      ->capture_default_str();
  command->add_option("--template", answers.prompt_template,
                      "rouge: the text around a prompt, as \"Summarize this dialog:\\n{}\\n---\\nSummary:\"");
  command->callback([options, batch] {
    if (batch->count() > 0) options->windows.batch = options->request.batch;
    run(*options);
  });
}

} // namespace hydrascope::app
