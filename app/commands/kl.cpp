// hydrascope kl: how far kernels lie from softmax on real data (Hedgehog paper, tables 4, 5 and 14).
#include "app/commands/kl.h"

#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "app/document/training_form.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/training/distributed/process_group.h"

namespace hydrascope::app {

void add_data_options(CLI::App& command, DataOptions& options) {
  command
      .add_option("--data", options.data,
                  "text: files with a text a line, or a column of tab-separated lines; images: folders; "
                  "recorded attention: captures, or folders of them")
      ->delimiter(',');
  command.add_option("--column", options.column, "column of tab-separated lines, from 1")
      ->check(positive_number());
  command
      .add_option("--pair-column", options.pair_column,
                  "column of the second texts of pairs, which are run as one input")
      ->check(positive_number());
  command.add_flag("--header", options.header, "skip the first line of each file");
  command
      .add_option("--limit", options.limit,
                  "the first texts of each file, or so many pictures taken evenly from each folder")
      ->check(positive_number());
}

TeacherForcedRequest measure_request(const CommonOptions& common, const DataOptions& data) {
  if (common.schedule != ScheduleText{})
    throw UsageError("--kernel, --replace and --layers", "teacher-forced runs have softmax in every layer",
                     "name the kernels to compare with --kernels");
  const bool pictures = !data.data.empty() && std::filesystem::is_directory(data.data.front());
  const RunRequest run =
      make_request(with_capture_of(common, data.data), pictures ? InputKind::image : InputKind::text);
  TeacherForcedRequest request;
  request.model_folder = run.model_folder;
  request.adapters = run.adapters;
  request.execution = run.execution;
  request.data.assign(data.data.begin(), data.data.end());
  request.column = data.column;
  request.pair_column = data.pair_column;
  request.header = data.header;
  request.limit = data.limit;
  if (request.data.empty() && !common.capture.empty()) request.data = {common.capture};
  if (request.data.empty()) {
    const bool images = read_model_info(request.model_folder).input == InputKind::image;
    request.data = {bundled_data(images ? InputKind::image : InputKind::text)};
  }
  return request;
}

TeacherForcedOutcome measure_with_progress(const TeacherForcedRequest& request, const std::string& label) {
  TeacherForcedOutcome outcome;
  if (request.share.rank == 0) {
    ProgressBar bar(label);
    outcome = measure_teacher_forced(request,
                                     [&](std::int64_t done, std::int64_t total) { bar.show(done, total); });
  } else {
    outcome = measure_teacher_forced(request);
  }
  print_notes(outcome.notes);
  return outcome;
}

std::vector<std::string> data_names(const TeacherForcedOutcome& outcome) {
  std::vector<std::filesystem::path> paths;
  for (const KernelMeasure& measure : outcome.measures) paths.push_back(measure.data);
  return telling_names(paths);
}

namespace {

using nlohmann::ordered_json;

struct KlOptions {
  CommonOptions common;
  DataOptions data;
  std::string kernels;
  std::vector<std::int64_t> lengths;
  bool joined = false;
};

ordered_json means_json(const KernelMeans& means) {
  return {{"kl", number_or_null(means.kl)},
          {"entropy", number_or_null(means.entropy)},
          {"spearman", number_or_null(means.spearman)},
          {"change",
           {{"ratio", number_or_null(means.ratio)},
            {"cosine", number_or_null(means.cosine)},
            {"relative_error", number_or_null(means.relative_error)}}},
          {"clamped_share", number_or_null(means.clamped_share)}};
}

// The range of q·k/√d by head, softmax's exponents, which are part of its entry.
ordered_json scores_json(const std::vector<HeadScores>& heads) {
  ordered_json smallest = ordered_json::array(), largest = ordered_json::array(),
               below = ordered_json::array();
  for (const HeadScores& head : heads) {
    smallest.push_back(number_or_null(head.smallest));
    largest.push_back(number_or_null(head.largest));
    below.push_back(number_or_null(head.share_below));
  }
  return {{"smallest", smallest}, {"largest", largest}, {"share_below_minus_one", below}};
}

const ScoreMeasure* scores_of(const KernelMeasure& measure, const TeacherForcedOutcome& outcome) {
  if (!kernel_info(measure.kernel).exact_softmax) return nullptr;
  for (const ScoreMeasure& scores : outcome.scores)
    if (scores.data == measure.data && scores.length == measure.length) return &scores;
  return nullptr;
}

ordered_json measure_json(const KernelMeasure& measure, const TeacherForcedOutcome& outcome) {
  ordered_json entry = {{"kernel", measure.kernel.text()},
                        {"data", measure.data.string()},
                        {"length", measure.length ? ordered_json(*measure.length) : ordered_json()},
                        {"items", measure.items},
                        {"tokens", measure.tokens}};
  entry.update(means_json(measure.mean));
  entry["kl_standard_error"] = number_or_null(measure.kl_error); // over the items
  entry["untrained"] = measure.untrained;
  entry["zero_denominators"] = measure.zero_denominators;
  const ScoreMeasure* const scores = scores_of(measure, outcome);
  entry["per_layer"] = ordered_json::array();
  for (std::size_t layer = 0; layer < measure.layers.size(); ++layer) {
    ordered_json one = {{"layer", layer}};
    one.update(means_json(measure.layers[layer]));
    if (scores != nullptr) one["scores"] = scores_json(scores->layers[layer]);
    entry["per_layer"].push_back(std::move(one));
  }
  return entry;
}

void print_measures(const TeacherForcedOutcome& outcome) {
  std::vector<std::vector<std::string>> rows{{"kernel", "data", "length", "items", "KL", "± error", "clamped",
                                              "entropy", "ρ", "‖out‖ ratio", "cosine", "error"}};
  const std::vector<std::string> names = data_names(outcome);
  for (std::size_t index = 0; index < names.size(); ++index) {
    const KernelMeasure& measure = outcome.measures[index];
    const KernelMeans& mean = measure.mean;
    rows.push_back({measure.kernel.label() + (measure.untrained ? " (untrained)" : ""), names[index],
                    measure.length ? std::to_string(*measure.length) : "—", std::to_string(measure.items),
                    decimal(mean.kl), decimal(measure.kl_error), decimal(mean.clamped_share),
                    decimal(mean.entropy), decimal(mean.spearman), decimal(mean.ratio), decimal(mean.cosine),
                    decimal(mean.relative_error)});
  }
  print_table(rows, "llrrrrrrrrrr");
}

void run(const KlOptions& options) {
  if (options.data.data.empty() && options.common.capture.empty())
    throw UsageError("--data", "is missing", "name a text file, a folder of pictures, or captures");
  TeacherForcedRequest request = measure_request(options.common, options.data);
  if (!options.kernels.empty()) request.kernels = parse_kernel_list(options.kernels);
  request.lengths = options.lengths;
  request.joined = options.joined;
  training::ProcessGroupOptions together;
  together.remedy = "start all again";
  const training::WorldInfo world = training::world_from_environment();
  training::ProcessGroup group(world, together);
  request.share = group.share();
  request.execution.device = training::device_of_process(request.execution.device, world);
  const TeacherForcedOutcome outcome = measure_with_progress(request, "kl");
  if (group.rank() != 0) return;
  if (!options.common.json) {
    print_measures(outcome);
    return;
  }
  ordered_json list = ordered_json::array();
  for (const KernelMeasure& measure : outcome.measures) list.push_back(measure_json(measure, outcome));
  fmt::print("{}\n", text_of_json(list, 2));
}

} // namespace

void add_kl_command(CLI::App& program) {
  CLI::App* const command = program.add_subcommand(
      "kl",
      "KL divergence from softmax, entropy, monotonicity and output change of kernels on real data, "
      "teacher-forced; started by torchrun, srun or mpirun, several processes share the data");
  const auto options = std::make_shared<KlOptions>();
  add_common_options(*command, options->common);
  add_data_options(*command, options->data);
  command->add_option("--kernels", options->kernels,
                      "kernels to compare, as a,b,c (default: all whose weights are distributions)");
  command
      ->add_option("--lengths", options->lengths,
                   "as 256,1024: weights over so many tokens, q and k of consecutive texts concatenated")
      ->delimiter(',')
      ->check(positive_number());
  command->add_flag("--joined", options->joined,
                    "feed the texts as one long text, positions modulo the model's maximum");
  command->callback([options] { run(*options); });
}

} // namespace hydrascope::app
