#include "engine/run/generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "engine/attention/interface/remedies.h"
#include "engine/base/error.h"
#include "engine/base/lockstep.h"
#include "engine/run/decoding_run.h"
#include "engine/run/pass.h"
#include "engine/run/placement.h"

namespace hydrascope {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(const Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// For another thread's generation to come to the same step.
double ms_waited() {
  const LockstepMember* const member = LockstepMember::current();
  return member == nullptr ? 0 : member->lockstep().ms_waited(member->side());
}

// In [0,1), of seed and position alone.
double uniform(const std::uint64_t seed, const std::int64_t position) {
  std::seed_seq mixed{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(position)};
  std::mt19937_64 engine(mixed);
  return static_cast<double>(engine() >> 11) * 0x1.0p-53;
}

// Of contiguous float32 logits (V) on the CPU. Plain loops: LibTorch's operators would wake OpenMP's threads
// for every token, which then wait on the core of those that compute the products (thread_team.h).
std::span<const float> values_of(const at::Tensor& logits) {
  return {logits.const_data_ptr<float>(), static_cast<std::size_t>(logits.numel())};
}

// NaN where one is NaN.
float largest_of(const std::span<const float> logits) {
  float largest = -std::numeric_limits<float>::infinity();
  bool defined = true;
  for (const float x : logits) {
    largest = std::max(largest, x);
    defined &= x == x;
  }
  return defined ? largest : std::numeric_limits<float>::quiet_NaN();
}

// log softmax(logits) of one; `largest` of them.
double log_probability(const std::span<const float> logits, const double largest, const std::int64_t index) {
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - largest);
  return static_cast<double>(logits[static_cast<std::size_t>(index)]) - largest - std::log(sum);
}

// The index of the next token from logits (V), of which `largest` is the largest.
std::int64_t chosen(const std::span<const float> logits, const double largest, const Sampling& sampling,
                    const std::int64_t position) {
  if (sampling.temperature <= 0) return std::ranges::max_element(logits) - logits.begin();
  std::vector<double> shares; // not normalised
  shares.reserve(logits.size());
  for (const float x : logits)
    shares.push_back(std::exp((static_cast<double>(x) - largest) / sampling.temperature));
  // A heap: usually few tokens are needed. Ties go to the lower index.
  std::vector<std::size_t> heap(logits.size()), likeliest;
  std::iota(heap.begin(), heap.end(), std::size_t{0});
  const auto comes_later = [&](const std::size_t a, const std::size_t b) {
    return shares[a] != shares[b] ? shares[a] < shares[b] : a > b;
  };
  std::ranges::make_heap(heap, comes_later);
  const auto next = [&] {
    std::ranges::pop_heap(heap, comes_later);
    likeliest.push_back(heap.back());
    heap.pop_back();
    return shares[likeliest.back()];
  };
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sampling.top_p < 1) {
    const double enough = sampling.top_p * sum;
    for (sum = 0; sum < enough && !heap.empty();) sum += next();
  }
  const double drawn = uniform(sampling.seed, position) * sum;
  double below = 0; // the probability of the tokens up to and with the one chosen
  for (std::size_t i = 0;; ++i) {
    if (i == likeliest.size()) next();
    below += shares[likeliest[i]];
    const bool others = sampling.top_p >= 1 && !heap.empty() && shares[heap.front()] > 0;
    const bool last = i + 1 == likeliest.size() && !others;
    if (below > drawn || last) return static_cast<std::int64_t>(likeliest[i]);
  }
}

// Removes what follows the first stop text; true if there was one.
bool cut_at(std::string& text, const std::vector<std::string>& stops) {
  std::size_t first = std::string::npos;
  for (const std::string& stop : stops)
    if (!stop.empty()) first = std::min(first, text.find(stop));
  if (first == std::string::npos) return false;
  text.resize(first);
  return true;
}

} // namespace

void check_sampling(const Sampling& sampling) {
  if (!(sampling.temperature >= 0 && sampling.temperature <= 100))
    throw UsageError(fmt::format("--temperature {}", sampling.temperature), "must lie between 0 and 100",
                     "use 0 for the likeliest token, 1 for the model's own distribution");
  if (!(sampling.top_p > 0 && sampling.top_p <= 1))
    throw UsageError(fmt::format("--top-p {}", sampling.top_p), "must lie above 0 and be at most 1",
                     "use 1 for all tokens");
}

namespace {

// The kernel of each layer, with its seed.
Schedule seeded_schedule(const GenerateRequest& request, const int layers) {
  return seeded(resolved(request.schedule, layers), request.execution.seed);
}

template <typename Work>
auto with_remedies_of(const GenerateRequest& request, const Work& work) {
  return with_remedies({.subject = "generate",
                        .memory = "use a linear kernel, whose state does not grow, or --dtype bfloat16",
                        .other = "try a shorter text or another kernel",
                        .device = request.execution.device},
                       work);
}

AppliedModel applied_for(const GenerateRequest& request, ModelStore& models) {
  check_sampling(request.sampling);
  const Placement placement = placement_of(request.execution);
  return with_remedies_of(request, [&] {
    const auto base = models.base(request.model_folder);
    const Schedule schedule = seeded_schedule(request, base->info().layers);
    return models.apply(request.model_folder, base, request.adapters, schedule, placement);
  });
}

} // namespace

struct Generation::State {
  State(const GenerateRequest& asked, const AppliedModel& model, const std::stop_token& stop)
      : request(asked), placement(placement_of(asked.execution)) {
    check_sampling(request.sampling);
    const ModelInfo& info = model.model->info();
    outcome.schedule = seeded_schedule(request, info.layers);
    outcome.device = model.device;
    outcome.dtype = model.dtype;
    outcome.notes = info.notes;
    add_untrained_note(outcome.notes, model, outcome.schedule);
    for (const AppliedAdapter& adapter : model.adapters)
      if (adapter.for_schedule) outcome.adapters.push_back(adapter.info);

    ModelInput prompt = model.model->prepare_text(request.text);
    if (!prompt.note.empty()) outcome.notes.push_back(prompt.note);
    writer = model.model->token_stream();
    if (!request.written.empty()) {
      const std::vector<std::int64_t> before(request.written.begin(), request.written.end());
      prompt.token_ids = at::cat({prompt.token_ids, at::tensor(before, at::kLong).unsqueeze(0)}, 1);
      for (const std::int64_t id : before) writer->add(id);
    }
    outcome.prompt_tokens = prompt.token_ids.size(1);
    decoder.emplace(model, outcome.schedule.layers, placement, outcome.prompt_tokens + request.tokens);
    const auto start = Clock::now();
    read(prompt.token_ids, stop);
    outcome.prefill_ms = ms_since(start);
  }

  void read(const at::Tensor& ids, const std::stop_token& stop) {
    logits = decoder->read(ids, stop).to(at::kCPU).contiguous();
    largest = static_cast<double>(largest_of(values_of(logits)));
    if (!std::isfinite(largest)) check_finite(logits, decoder->model());
    outcome.state_bytes = decoder->state_bytes();
  }

  bool end(const char* why) {
    outcome.ended = why;
    outcome.text += writer->finish();
    return false;
  }

  bool advance(const std::stop_token& stop) {
    if (!outcome.ended.empty()) return false;
    if (static_cast<std::int64_t>(outcome.tokens.size()) >= request.tokens) return end("tokens");
    const auto start = Clock::now();
    const double waited = ms_waited();
    const Model& model = decoder->model();
    const std::int64_t id = chosen(values_of(logits), largest, request.sampling, decoder->tokens());
    if (request.stop_at_end && model.ends_text(id)) return end("end of text");
    GeneratedToken token{.id = static_cast<int>(id),
                         .text = model.output_label(id),
                         .logprob = log_probability(values_of(logits), largest, id)};
    outcome.text += writer->add(id);
    const bool stopped = cut_at(outcome.text, request.stop);
    const bool full = decoder->tokens() >= model.info().max_tokens;
    if (!stopped && !full) read(at::tensor({id}, at::kLong).unsqueeze(0), stop);
    token.ms = ms_since(start) - (ms_waited() - waited);
    outcome.tokens.push_back(std::move(token));
    if (stopped) outcome.ended = "stop";
    if (full && !stopped) end("positions");
    return true;
  }

  GenerateRequest request;
  Placement placement;
  std::optional<DecodingRun> decoder;
  at::Tensor logits;  // (V) float32 on the CPU, after the last token
  double largest = 0; // of the logits
  std::unique_ptr<TokenStream> writer;
  GenerateOutcome outcome;
};

Generation::Generation(const GenerateRequest& request, ModelStore& models, const std::stop_token& stop)
    : Generation(request, applied_for(request, models), stop) {}
Generation::Generation(const GenerateRequest& request, const AppliedModel& model, const std::stop_token& stop)
    : state_(with_remedies_of(request, [&] { return std::make_unique<State>(request, model, stop); })) {}
Generation::~Generation() = default;
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;

bool Generation::advance(const std::stop_token& stop) {
  return with_remedies_of(state_->request, [&] { return state_->advance(stop); });
}
const GenerateOutcome& Generation::outcome() const { return state_->outcome; }

namespace {

GenerateOutcome written_by(Generation generation, const TokenWritten& written, const std::stop_token& stop) {
  std::size_t told = 0;
  while (generation.advance(stop)) {
    const GenerateOutcome& outcome = generation.outcome();
    if (written)
      written(outcome.tokens.back(),
              std::string_view(outcome.text).substr(std::min(told, outcome.text.size())));
    told = outcome.text.size();
  }
  return generation.outcome();
}

} // namespace

AppliedModel decoder_of(const GenerateRequest& request, ModelStore& models) {
  return applied_for(request, models);
}

GenerateOutcome generate(const GenerateRequest& request, const TokenWritten& written,
                         const std::stop_token& stop, const std::shared_ptr<ModelStore>& models) {
  const ThreadCount threads(request.execution.threads);
  return written_by(Generation(request, *models, stop), written, stop);
}

GenerateOutcome generate_by(const AppliedModel& model, const GenerateRequest& request,
                            const TokenWritten& written, const std::stop_token& stop) {
  const ThreadCount threads(request.execution.threads);
  return written_by(Generation(request, model, stop), written, stop);
}

} // namespace hydrascope
