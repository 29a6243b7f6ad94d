// Figures of decoders: the loss of each token of a text, and what writing costs.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/commands/figure/kinds.h"
#include "app/commands/figure/task.h"
#include "app/commands/output.h"
#include "app/views/loss_view.h"
#include "app/views/writing_view.h"
#include "engine/base/error.h"
#include "engine/measure/generation_speed.h"
#include "engine/run/quantities/token_loss.h"

namespace hydrascope::app {
namespace {

// The schedule, or each kernel of --kernels in all layers.
std::vector<Schedule> schedules_of(const FigureOptions& options, const ScheduleChoice& own,
                                   const int layers) {
  if (options.kernels.empty()) return {resolved(own, layers)};
  std::vector<Schedule> schedules;
  for (const KernelSpec& kernel : parse_kernel_list(options.kernels))
    schedules.push_back({std::vector<KernelSpec>(static_cast<std::size_t>(layers), kernel)});
  return schedules;
}

void check_decoder(const FigureOptions& options, const ModelInfo& model) {
  if (!model.causal)
    throw UsageError("figure " + options.kind, model.name + " is no decoder",
                     "name one with --model, such as smollm2");
}

std::string schedule_title(const RunResult& run) {
  const bool untrained =
      std::ranges::any_of(run.layers, [](const LayerRun& layer) { return layer.untrained; });
  return run.schedule.summary() + (untrained ? ", untrained" : "");
}

// A schedule's line in a plot against the number of tokens; `again`: another line has its colour.
LinesPanel::Line length_line(const Schedule& schedule, const bool again) {
  LinesPanel::Line line;
  line.name = schedule.summary();
  line.colour = kernel_colour(telling_kernel(schedule));
  line.style = again ? LinesPanel::Style::dashed : LinesPanel::Style::marked;
  return line;
}

} // namespace

Figure draw_loss_strip(FigureTask& task) {
  RunTask run = run_task(task);
  check_decoder(task.options, read_model_info(run.request.model_folder));
  run.request.quantities = {TokenLossKey{}};
  std::vector<std::shared_ptr<const RunResult>> results;
  std::vector<LossItem> items;
  for (const Schedule& schedule : schedules_of(task.options, run.request.schedule, run.layers)) {
    run.request.schedule = schedule;
    results.push_back(task.runner.run(run.request));
    const RunResult& result = *results.back();
    const TokenLoss* const loss = result.quantities.find(TokenLossKey{});
    if (loss == nullptr)
      throw UsageError("--text", "has one token, which nothing comes before", "give a longer text");
    items.push_back({.run = &result, .loss = loss, .title = schedule_title(result)});
  }
  return finished(task, loss_figure(items), run.request, *results.front());
}

Figure draw_state(FigureTask& task) {
  const FigureOptions& options = task.options;
  const RunRequest common = make_request(model_options(options), InputKind::text);
  const ModelInfo model = read_model_info(common.model_folder);
  check_decoder(options, model);
  GenerationSpeedRequest request;
  request.model_folder = common.model_folder;
  request.adapters = common.adapters;
  request.schedule = common.schedule;
  request.execution = common.execution;
  if (!options.kernels.empty()) request.kernels = parse_kernel_list(options.kernels);
  request.tokens = 16;
  request.rounds = 3;
  request.contexts = options.lengths;
  if (options.lengths.empty())
    for (const std::int64_t context : {128, 512, 2048, 4096})
      if (context + request.tokens <= model.max_tokens) request.contexts.push_back(context);
  // A model with few positions is measured at the most that it has room for.
  if (request.contexts.empty()) request.contexts = {model.max_tokens - request.tokens};
  GenerationSpeedOutcome outcome;
  {
    ProgressBar bar("figure state");
    outcome = measure_generation_speed(
        request, [&](const std::int64_t done, const std::int64_t total) { bar.show(done, total); });
  }
  LinesPanel times, states;
  times.title = "Time of a token";
  times.y_label = "ms, whisker: slowest round";
  states.title = "State of all layers";
  states.y_label = "MB";
  times.x_label = states.x_label = "tokens before";
  times.log_x = states.log_x = states.log_y = true;
  std::vector<std::string> colours;
  std::size_t at = 0;
  for (const Schedule& schedule : schedules_of(options, request.schedule, model.layers)) {
    const std::string colour = telling_kernel(schedule);
    const bool again = std::ranges::count(colours, colour) > 0;
    colours.push_back(colour);
    LinesPanel::Line time = length_line(schedule, again);
    LinesPanel::Line state = length_line(schedule, again);
    time.upper_name = "slowest round";
    for (std::size_t i = 0; i < request.contexts.size(); ++i, ++at) {
      constexpr double mega = 1e6;
      const GenerationSpeed& speed = outcome.speeds.at(at);
      time.x.push_back(static_cast<double>(speed.context));
      time.y.push_back(speed.decode_ms);
      time.upper.push_back(speed.decode_ms_most);
      state.x.push_back(static_cast<double>(speed.context));
      state.y.push_back(static_cast<double>(speed.state_bytes) / mega);
    }
    times.lines.push_back(std::move(time));
    states.lines.push_back(std::move(state));
  }
  Figure figure;
  figure.title = model.name + " · what writing costs against the length";
  figure.subtitle = fmt::format(
      "medians of {} rounds of {} tokens; {} on {}, {} threads; the weights of a token "
      "alone can be read in {:.1f} ms",
      request.rounds, request.tokens, outcome.dtype, outcome.device, outcome.threads,
      outcome.speeds.front().read_ms);
  figure.panels.emplace_back(std::move(times));
  figure.panels.emplace_back(std::move(states));
  figure.columns = 2;
  figure.provenance = data_provenance(task, {}, "", {}, {});
  return figure;
}

} // namespace hydrascope::app
