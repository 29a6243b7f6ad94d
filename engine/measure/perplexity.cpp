#include "engine/measure/perplexity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "engine/attention/interface/remedies.h"
#include "engine/base/error.h"
#include "engine/run/inputs.h"
#include "engine/run/next_token.h"
#include "engine/run/pass.h"
#include "engine/run/placement.h"

namespace hydrascope {
namespace {

constexpr std::int64_t tokens_at_once = 2048;

// Tokens [first, end) of the text; those from `scored` on are predicted from the ones before.
struct Window {
  std::int64_t first = 0, end = 0, scored = 0;
};

std::vector<Window> windows_of(const std::int64_t tokens, const PerplexityRequest& request) {
  const std::int64_t stride = request.stride > 0 ? request.stride : request.window;
  std::vector<Window> windows;
  std::int64_t done = 0; // tokens before this one have been scored, or cannot be
  for (std::int64_t first = 0; first < tokens; first += stride) {
    const std::int64_t end = std::min(tokens, first + request.window);
    const std::int64_t scored = std::max(first + 1, done);
    if (scored < end) windows.push_back({first, end, scored});
    done = end;
    if (end == tokens) break;
  }
  return windows;
}

void check(const PerplexityRequest& request, const ModelInfo& model) {
  if (!model.causal)
    throw UsageError(model.name, "predicts no next token", "name a decoder with --model, such as smollm2");
  if (request.window < 2)
    throw UsageError(fmt::format("--window {}", request.window), "leaves no token to predict",
                     "use 2 or more");
  if (request.window > model.max_tokens)
    throw UsageError(fmt::format("--window {}", request.window),
                     fmt::format("{} has {} positions", model.name, model.max_tokens),
                     fmt::format("use {} or less", model.max_tokens));
  if (request.stride > request.window)
    throw UsageError(fmt::format("--stride {}", request.stride), "leaves tokens out",
                     "use the window or less");
}

PerplexityOutcome measure(const PerplexityRequest& request,
                          const std::function<void(std::int64_t, std::int64_t)>& progress,
                          const std::stop_token& stop, ModelStore& store) {
  const at::NoGradGuard no_gradients;
  const auto base = store.base(request.model_folder);
  const ModelInfo& info = base->info();
  check(request, info);
  const Placement placement = placement_of(request.execution);
  PerplexityOutcome outcome;
  outcome.schedule = seeded(resolved(request.schedule, info.layers), request.execution.seed);
  const AppliedModel model =
      store.apply(request.model_folder, base, request.adapters, outcome.schedule, placement);
  outcome.device = model.device;
  outcome.dtype = model.dtype;
  outcome.notes = info.notes;
  add_untrained_note(outcome.notes, model, outcome.schedule);
  for (const AppliedAdapter& adapter : model.adapters)
    if (adapter.for_schedule) outcome.adapters.push_back(adapter.info);

  TokenIds text = running_text(*model.model, request.data, request.characters);
  if (request.limit > 0 && static_cast<std::int64_t>(text.size()) > request.limit)
    text.resize(static_cast<std::size_t>(request.limit));
  const auto tokens = static_cast<std::int64_t>(text.size());
  const std::vector<Window> windows = windows_of(tokens, request);
  if (windows.empty()) throw Error(request.data.string(), "has less than two tokens", "name another file");

  const at::Tensor ids = at::tensor(text, at::kLong);
  Pass pass = plain_pass(model.model, layer_kernels(*model.model, outcome.schedule.layers));
  pass.observed = false;
  const std::int64_t most =
      request.batch > 0 ? request.batch : std::max<std::int64_t>(1, tokens_at_once / request.window);
  double sum = 0;
  std::vector<double> sums;
  std::vector<std::int64_t> counts;
  for (std::size_t at = 0; at < windows.size();) {
    const std::int64_t length = windows[at].end - windows[at].first;
    std::vector<at::Tensor> rows;
    std::size_t end = at;
    for (; end < windows.size() && static_cast<std::int64_t>(end - at) < most &&
           windows[end].end - windows[end].first == length;
         ++end)
      rows.push_back(ids.slice(0, windows[end].first, windows[end].end));
    ModelInput input;
    input.token_ids = at::stack(rows);
    pass.input.input = placed(*model.model, input);
    const at::Tensor hidden = run_pass(pass, stop).output;
    check_finite(hidden, *model.model);
    const at::Tensor loss =
        next_token_loss(*model.model, hidden, pass.input.input.token_ids).loss.to(at::kCPU, at::kDouble);
    for (; at < end; ++at) {
      const Window& window = windows[at];
      const std::int64_t row = static_cast<std::int64_t>(rows.size()) - static_cast<std::int64_t>(end - at);
      const at::Tensor scored = loss.select(0, row).slice(0, window.scored - window.first - 1);
      sums.push_back(scored.sum().item<double>());
      counts.push_back(scored.numel());
      sum += sums.back();
      outcome.losses.push_back(sums.back() / static_cast<double>(counts.back()));
      outcome.tokens += scored.numel();
    }
    if (progress) progress(static_cast<std::int64_t>(at), static_cast<std::int64_t>(windows.size()));
  }
  outcome.windows = static_cast<std::int64_t>(windows.size());
  outcome.nll = sum / static_cast<double>(outcome.tokens);
  outcome.perplexity = std::exp(outcome.nll);
  // Of a ratio of sums over windows, which are taken as independent.
  double squares = 0;
  for (std::size_t i = 0; i < sums.size(); ++i)
    squares += std::pow(sums[i] - outcome.nll * static_cast<double>(counts[i]), 2);
  const auto number = static_cast<double>(sums.size());
  outcome.standard_error =
      number > 1 ? std::sqrt(squares * number / (number - 1)) / static_cast<double>(outcome.tokens)
                 : std::numeric_limits<double>::quiet_NaN();
  return outcome;
}

} // namespace

PerplexityOutcome measure_perplexity(const PerplexityRequest& request,
                                     const std::function<void(std::int64_t, std::int64_t)>& progress,
                                     const std::stop_token& stop, const std::shared_ptr<ModelStore>& models) {
  const ThreadCount threads(request.execution.threads);
  return with_remedies({.subject = "evaluate",
                        .memory = "use a smaller --window or --batch",
                        .other = "try a smaller --window or --batch",
                        .device = request.execution.device},
                       [&] { return measure(request, progress, stop, *models); });
}

} // namespace hydrascope
