// hydrascope generate: goes on with a text; hydrascope bench generate: how fast, and with how much memory.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/measure/generation_speed.h"
#include "engine/run/generate.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;

// The default model of commands for decoders.
CommonOptions of_decoder(CommonOptions common) {
  if (common.model.empty()) common.model = "smollm2";
  return common;
}

struct GenerateOptions {
  CommonOptions common;
  std::string text;
  GenerateRequest request;
  bool past_end = false;
};

ordered_json outcome_json(const GenerateOutcome& outcome) {
  ordered_json tokens = ordered_json::array(), adapters = ordered_json::array();
  for (const GeneratedToken& token : outcome.tokens)
    tokens.push_back({{"id", token.id}, {"text", token.text}, {"logprob", token.logprob}, {"ms", token.ms}});
  for (const AdapterInfo& adapter : outcome.adapters)
    adapters.push_back({{"name", adapter.name}, {"hash", adapter.hash}});
  return {{"text", outcome.text},
          {"tokens", tokens},
          {"ended", outcome.ended},
          {"prompt_tokens", outcome.prompt_tokens},
          {"prefill_ms", outcome.prefill_ms},
          {"state_bytes", outcome.state_bytes},
          {"device", outcome.device},
          {"dtype", outcome.dtype},
          {"adapters", adapters},
          {"notes", outcome.notes}};
}

std::string text_of(const GenerateOptions& options) {
  if (options.text != "-") return options.text;
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

void run(GenerateOptions& options) {
  const RunRequest common = make_request(of_decoder(options.common), InputKind::text);
  GenerateRequest& request = options.request;
  request.model_folder = common.model_folder;
  request.adapters = common.adapters;
  request.schedule = common.schedule;
  request.execution = common.execution;
  request.sampling.seed = common.execution.seed;
  request.text = text_of(options);
  request.stop_at_end = !options.past_end;
  const bool json = options.common.json;
  bool begun = false;
  const auto begin = [&] { // not before an error of the request
    if (!json && !std::exchange(begun, true)) fmt::print("{}", request.text);
  };
  const GenerateOutcome outcome = generate(request, [&](const GeneratedToken&, const std::string_view text) {
    if (json) return;
    begin();
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  });
  begin(); // where nothing was generated
  print_notes(outcome.notes);
  if (json)
    fmt::print("{}\n", text_of_json(outcome_json(outcome), 2));
  else
    fmt::print("\n");
}

struct BenchOptions {
  CommonOptions common;
  std::string kernels;
  GenerationSpeedRequest request;
};

ordered_json speed_json(const GenerationSpeed& speed) {
  return {{"schedule", speed.schedule},
          {"untrained", speed.untrained},
          {"context", speed.context},
          {"prefill_tokens_per_second", speed.prefill_tokens_per_second},
          {"decode_ms", speed.decode_ms},
          {"decode_ms_range", {speed.decode_ms_least, speed.decode_ms_most}},
          {"state_bytes", speed.state_bytes},
          {"weight_bytes", speed.weight_bytes},
          {"share_of_bandwidth", speed.read_ms / speed.decode_ms},
          {"share_of_bandwidth_with_state", speed.read_all_ms / speed.decode_ms}};
}

void bench(BenchOptions& options) {
  const RunRequest common = make_request(of_decoder(options.common), InputKind::text);
  GenerationSpeedRequest& request = options.request;
  request.model_folder = common.model_folder;
  request.adapters = common.adapters;
  request.schedule = common.schedule;
  request.execution = common.execution;
  if (!options.kernels.empty()) {
    if (options.common.schedule != ScheduleText{})
      throw UsageError("--kernels", "cannot be combined with --kernel, --replace and --layers",
                       "leave one of them out");
    request.kernels = parse_kernel_list(options.kernels);
  }
  GenerationSpeedOutcome outcome;
  {
    ProgressBar bar("generating");
    outcome = measure_generation_speed(
        request, [&](const std::int64_t done, const std::int64_t total) { bar.show(done, total); });
  }
  if (options.common.json) {
    ordered_json all = ordered_json::array();
    for (const GenerationSpeed& speed : outcome.speeds) all.push_back(speed_json(speed));
    fmt::print("{}\n", text_of_json(all, 2));
    return;
  }
  std::vector<std::vector<std::string>> rows = {{"schedule", "context", "prefill tokens/s", "ms per token",
                                                 "range", "state", "weights read", "share of bandwidth",
                                                 "… with state"}};
  for (const GenerationSpeed& speed : outcome.speeds)
    rows.push_back({speed.schedule + (speed.untrained ? " (untrained)" : ""), std::to_string(speed.context),
                    fmt::format("{:.0f}", speed.prefill_tokens_per_second),
                    fmt::format("{:.2f}", speed.decode_ms),
                    fmt::format("{:.2f}–{:.2f}", speed.decode_ms_least, speed.decode_ms_most),
                    fmt::format("{:.2f} MB", static_cast<double>(speed.state_bytes) / 1e6),
                    fmt::format("{:.0f} MB", static_cast<double>(speed.weight_bytes) / 1e6),
                    fmt::format("{:.0f} %", 100 * speed.read_ms / speed.decode_ms),
                    fmt::format("{:.0f} %", 100 * speed.read_all_ms / speed.decode_ms)});
  print_table(rows, "lrrrrrrrr");
  fmt::print("{} on {}, {} threads; memory is read at {:.1f} GB/s\n", outcome.dtype, outcome.device,
             outcome.threads, outcome.read_bandwidth / 1e9);
}

} // namespace

void add_generate_command(CLI::App& program) {
  const auto options = std::make_shared<GenerateOptions>();
  CLI::App* const command = program.add_subcommand("generate", "go on with a text, token by token");
  GenerateRequest& request = options->request;
  command->add_option("--text", options->text, "the text to go on with; - reads standard input")->required();
  command->add_option("--tokens", request.tokens, "at most so many")
      ->check(non_negative_number())
      ->capture_default_str();
  command
      ->add_option("--temperature", request.sampling.temperature,
                   "0: the likeliest token; 1: the model's own distribution")
      ->capture_default_str();
  command
      ->add_option("--top-p", request.sampling.top_p,
                   "drawn from the likeliest tokens that together have this probability")
      ->capture_default_str();
  command->add_option("--stop", request.stop, "ends before this text; may be repeated");
  command->add_flag("--past-end", options->past_end, "goes on after a token that ends a text");
  add_common_options(*command, options->common, CaptureUse::refused);
  command->footer(
      "Layers keep a state: keys and values for softmax, sums of constant size for linear kernels. "
      "--seed chooses other draws.");
  command->callback([options] { run(*options); });
}

void add_bench_generate(CLI::App& bench_command) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* const command =
      bench_command.add_subcommand("generate", "time and memory of a prompt and of each token after it");
  command
      ->add_option(
          "--context", options->request.contexts,
          "tokens before the first that is written (default: 128, 1024 and 8192, shortened to what the "
          "model's positions leave)")
      ->delimiter(',')
      ->check(positive_number());
  command->add_option("--tokens", options->request.tokens, "written and timed after each context")
      ->check(positive_number())
      ->capture_default_str();
  command->add_option("--rounds", options->request.rounds, "of each: medians are shown")
      ->check(positive_number())
      ->capture_default_str();
  command->add_option("--kernels", options->kernels, "comma list: each in all layers, in turns");
  add_common_options(*command, options->common, CaptureUse::refused);
  command->callback([options] { bench(*options); });
}

} // namespace hydrascope::app
