#include "engine/measure/generation_speed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/randint.h>
#include <fmt/format.h>

#include "engine/attention/interface/remedies.h"
#include "engine/base/error.h"
#include "engine/measure/machine.h"
#include "engine/measure/quantiles.h"
#include "engine/models/transformer/row_weights.h"
#include "engine/run/decoding_run.h"
#include "engine/run/placement.h"

namespace hydrascope {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(const Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<Schedule> schedules_of(const GenerationSpeedRequest& request, const int layers) {
  std::vector<Schedule> schedules;
  for (const KernelSpec& kernel : request.kernels)
    schedules.push_back({std::vector<KernelSpec>(static_cast<std::size_t>(layers), kernel)});
  if (schedules.empty()) schedules.push_back(resolved(request.schedule, layers));
  for (Schedule& schedule : schedules) schedule = seeded(std::move(schedule), request.execution.seed);
  return schedules;
}

// The request's contexts, or the default ones that the model has positions for beside the request's tokens;
// what is longer becomes the longest that fits.
std::vector<std::int64_t> contexts_of(const GenerationSpeedRequest& request, const ModelInfo& model) {
  if (!request.contexts.empty()) return request.contexts;
  const std::int64_t most = model.max_tokens - request.tokens;
  std::vector<std::int64_t> contexts;
  for (const std::int64_t context : {128, 1024, 8192})
    if (contexts.empty() || contexts.back() < most) contexts.push_back(std::min(context, most));
  return contexts;
}

// The bytes of the weights that a token's products read, in the type in which they read them (of the
// embeddings only where they are the head, too), and of the schedule's maps.
std::int64_t weight_bytes(const Model& model, const Schedule& schedule) {
  std::int64_t bytes = 0;
  bool tied = true;
  const auto read = [&](const std::string& name) {
    const at::Tensor weight = model.parameter(name);
    return weight.numel() * static_cast<std::int64_t>(at::elementSize(row_type(weight)));
  };
  for (const std::string& name : model.parameter_names()) {
    tied = tied && name != "lm_head.weight";
    if (!name.starts_with("embed_") && !name.starts_with("kernel.")) bytes += read(name);
  }
  if (tied) bytes += read("embed_tokens.weight");
  for (const LayerKernel& layer : layer_kernels(model, schedule.layers))
    for (const auto& [name, value] : layer.parameters) bytes += static_cast<std::int64_t>(value.nbytes());
  return bytes;
}

// One schedule at one context: a round's times.
struct Times {
  std::vector<double> prefill, decode; // seconds
  std::int64_t state_bytes = 0, weight_bytes = 0;
  bool untrained = false;
};

void run_round(const AppliedModel& model, const Schedule& schedule, const Placement& placement,
               const std::int64_t context, const int tokens, const std::stop_token& stop, Times& times) {
  DecodingRun run(model, schedule.layers, placement, context + tokens);
  const std::int64_t vocabulary = run.model().info().vocabulary;
  const at::Tensor prompt = at::randint(vocabulary, {1, context}, at::kLong);
  auto start = Clock::now();
  run.read(prompt, stop).cpu(); // waits for a device
  times.prefill.push_back(seconds_since(start));
  std::vector<double> decoded;
  for (int token = 0; token < tokens; ++token) {
    const at::Tensor next = at::randint(vocabulary, {1, 1}, at::kLong);
    start = Clock::now();
    run.read(next, stop).cpu();
    decoded.push_back(seconds_since(start));
  }
  times.decode.push_back(repeated_time(decoded).median);
  times.state_bytes = run.state_bytes();
}

GenerationSpeedOutcome measure(const GenerationSpeedRequest& request,
                               const std::function<void(std::int64_t, std::int64_t)>& progress,
                               const std::stop_token& stop, const std::shared_ptr<ModelStore>& models) {
  const ThreadCount threads(request.execution.threads);
  const auto base = models->base(request.model_folder);
  const ModelInfo& info = base->info();
  const Placement placement = placement_of(request.execution);
  const std::vector<Schedule> schedules = schedules_of(request, info.layers);
  if (request.contexts.empty() && request.tokens >= info.max_tokens)
    throw UsageError(
        fmt::format("--tokens {}", request.tokens),
        fmt::format("leaves no room for a context in the {} positions of {}", info.max_tokens, info.name),
        fmt::format("use 1 to {}", info.max_tokens - 1));
  const std::vector<std::int64_t> contexts = contexts_of(request, info);
  for (const std::int64_t context : contexts)
    if (context < 1 || context + request.tokens > info.max_tokens)
      throw UsageError(fmt::format("--context {}", context),
                       fmt::format("with {} more tokens exceeds the {} positions of {}", request.tokens,
                                   info.max_tokens, info.name),
                       "name smaller contexts, or fewer tokens with --tokens");
  const std::size_t cases = schedules.size() * contexts.size();
  std::vector<Times> times(cases);
  std::vector<double> bandwidths;
  GenerationSpeedOutcome outcome;
  const auto total = static_cast<std::int64_t>(cases) * (request.rounds + 1);
  std::int64_t done = 0;
  for (int round = -1; round < request.rounds; ++round) { // the first one warms up
    for (std::size_t i = 0; i < cases; ++i) {
      const Schedule& schedule = schedules[i / contexts.size()];
      const AppliedModel model =
          models->apply(request.model_folder, base, request.adapters, schedule, placement);
      Times warm_up;
      const std::int64_t context = contexts[i % contexts.size()];
      run_round(model, schedule, placement, round < 0 ? std::min<std::int64_t>(context, 128) : context,
                round < 0 ? std::min(2, request.tokens) : request.tokens, stop,
                round < 0 ? warm_up : times[i]);
      outcome.device = model.device;
      outcome.dtype = model.dtype;
      if (round < 0) {
        times[i].weight_bytes = weight_bytes(*model.model, schedule);
        times[i].untrained = !untrained_note(*model.model, model.adapters, schedule).empty();
      }
      if (progress) progress(++done, total);
    }
    // The memory of a shared machine changes its speed within minutes, so it is measured after each round.
    if (round >= 0) bandwidths.push_back(read_bandwidth(times.front().weight_bytes, placement.device_name()));
  }
  outcome.threads = at::get_num_threads();
  outcome.read_bandwidth = median(bandwidths);
  for (std::size_t i = 0; i < cases; ++i) {
    GenerationSpeed speed;
    speed.schedule = schedules[i / contexts.size()].summary();
    speed.untrained = times[i].untrained;
    speed.context = contexts[i % contexts.size()];
    speed.prefill_tokens_per_second =
        static_cast<double>(speed.context) / repeated_time(times[i].prefill).median;
    speed.decode_ms = 1000 * repeated_time(times[i].decode).median;
    const auto [least, most] = std::ranges::minmax(times[i].decode);
    speed.decode_ms_least = 1000 * least;
    speed.decode_ms_most = 1000 * most;
    speed.state_bytes = times[i].state_bytes;
    speed.weight_bytes = times[i].weight_bytes;
    const auto read = [&](const std::int64_t bytes) {
      return 1000 * static_cast<double>(bytes) / outcome.read_bandwidth;
    };
    speed.read_ms = read(speed.weight_bytes);
    speed.read_all_ms = read(speed.weight_bytes + speed.state_bytes);
    outcome.speeds.push_back(std::move(speed));
  }
  return outcome;
}

} // namespace

GenerationSpeedOutcome measure_generation_speed(
    const GenerationSpeedRequest& request, const std::function<void(std::int64_t, std::int64_t)>& progress,
    const std::stop_token& stop, const std::shared_ptr<ModelStore>& models) {
  return with_remedies({.subject = "bench generate",
                        .memory = "name smaller contexts, or use --dtype bfloat16",
                        .other = "name smaller contexts or another kernel",
                        .device = request.execution.device},
                       [&] { return measure(request, progress, stop, models); });
}

} // namespace hydrascope
