#include "engine/run/runner.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "engine/attention/interface/device.h"
#include "engine/attention/interface/remedies.h"
#include "engine/base/process.h"
#include "engine/models/transformer/checkpoint.h"
#include "engine/run/device_clock.h"
#include "engine/run/run_plan.h"

namespace hydrascope {

struct Runner::State {
  State(std::size_t cache_bytes, std::shared_ptr<ModelStore> shared)
      : models(std::move(shared)), cache_limit(cache_bytes) {}
  PrefixCache& cache(const Placement& placement) {
    return device_caches.try_emplace(placement.device_name(), cache_limit).first->second;
  }

  std::shared_ptr<ModelStore> models;
  InputPreparer inputs;
  std::size_t cache_limit;
  std::map<std::string, PrefixCache> device_caches; // by device
  ReadingCaches caches;
};

namespace {

constexpr std::int64_t most_next_tokens = 100;

double seconds_since(const std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of logits (1,C) in double precision, best first: all classes, the likeliest next tokens.
std::vector<Prediction> predictions_of(const at::Tensor& logits, const Model& model) {
  const at::Tensor values = logits.detach().select(0, 0).to(at::kCPU, at::kDouble);
  const at::Tensor shares = probabilities_of(values, model.info());
  const auto [sorted, order] = values.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true);
  const std::int64_t listed =
      model.info().causal ? std::min(values.size(0), most_next_tokens) : values.size(0);
  std::vector<Prediction> predictions;
  for (std::int64_t i = 0; i < listed; ++i) {
    const std::int64_t index = order[i].item<std::int64_t>();
    predictions.push_back({.index = static_cast<int>(index),
                           .label = model.output_label(index),
                           .probability = shares[index].item<double>(),
                           .logit = sorted[i].item<double>()});
  }
  return predictions;
}

// The facts about each layer as it ran.
std::vector<LayerRun> layer_runs(const Pass& pass, const std::vector<PassBlock>& blocks) {
  std::vector<LayerRun> runs;
  const bool image = pass.model.model->info().input == InputKind::image;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const LayerKernel& layer = pass.layers[i];
    const KernelInfo& info = layer.kernel->info();
    const AdapterInfo* trained =
        trained_adapter(pass.model.adapters, static_cast<int>(i), layer.kernel->spec());
    LayerRun run;
    run.kernel = layer.kernel->spec();
    run.path = blocks[i].path;
    // What reads a layer of a capture runs the kernel itself, as far as it needs to.
    if (!pass.model.model->info().capture) run.seconds = blocks[i].seconds;
    run.cached = !blocks[i].ran;
    run.differentiable = blocks[i].ran && static_cast<int>(i) >= pass.first_gradient_layer;
    run.zero_denominators = blocks[i].zero_denominators;
    run.untrained = is_untrained(pass.model.adapters, static_cast<int>(i), layer);
    // Sums over tokens grow with their number; a normalised kernel does not depend on the resolution.
    run.other_resolution =
        image && trained && !info.normalised && trained->tokens > 0 && trained->tokens != pass.input.tokens;
    runs.push_back(std::move(run));
  }
  return runs;
}

// The execution of one request.
class Job {
public:
  Job(const RunRequest& request, RunPlan plan, PrefixCache& cache, std::stop_token stop,
      const RunProgress& progress)
      : request_(request),
        plan_(std::move(plan)),
        cache_(cache),
        stop_(std::move(stop)),
        progress_(progress) {
    count(plan_.own);
    if (plan_.teacher) count(*plan_.teacher);
    if (plan_.other) count(*plan_.other);
    if (plan_.whole) count(*plan_.whole);
    for (const auto& reading : plan_.readings) total_ += reading->extra_blocks(plan_.own);
  }

  // Throws Error if parameters that the run has used could not be read.
  void require_files() const {
    plan_.own.model.model->require_files();
    if (plan_.other) plan_.other->model.model->require_files();
  }

  // Without gradients a run uses the packed copies, and the next one with gradients reads the mapped files
  // again in a few milliseconds.
  void release_weights() const {
    for (const auto& [name, tensor] : plan_.own.model.model->tensors()) release_pages(tensor);
    if (!plan_.other) return;
    for (const auto& [name, tensor] : plan_.other->model.model->tensors()) release_pages(tensor);
  }

  void run(RunResult& result) {
    describe(result);
    const RunControl control{stop_, [this] { block_done(); }};
    for (const auto& reading : plan_.readings) reading->run_first(plan_.own, control);
    PassOutcome outcome = pass_through(plan_.own, false);
    finish_own(outcome, result);
    if (plan_.whole) result.whole = run_whole_input(outcome);
    outcome = {};
    if (plan_.teacher) {
      outcome = pass_through(*plan_.teacher, true);
      finish_readings(*plan_.teacher, true, outcome, {}, {}, result);
    }
    result.quantities.order_as(request_.quantities);
  }

private:
  void count(const Pass& pass) {
    const std::vector<bool> run = blocks_to_run(pass, cache_);
    total_ += static_cast<int>(std::count(run.begin(), run.end(), true));
  }

  void block_done() {
    ++done_;
    if (progress_) progress_(std::min(done_, total_), total_);
  }

  PassOutcome pass_through(const Pass& pass, bool teacher_forced) {
    PassOutcome outcome = run_pass(
        pass, cache_, stop_,
        [&](int layer, const AttentionTap& tap) {
          const LayerTap seen{layer, pass, constant_input(tap.input), stop_};
          for (const auto& reading : plan_.readings)
            if (reading->teacher_forced() == teacher_forced && reading->taps(layer)) reading->read(seen);
          if (!teacher_forced && std::ranges::binary_search(plan_.gradient_layers, layer))
            taps_.emplace(layer, tap);
        },
        [this] { block_done(); });
    if (outcome.output.defined()) check_finite(outcome.output, *pass.model.model);
    return outcome;
  }

  void finish_readings(const Pass& pass, bool teacher_forced, const PassOutcome& outcome,
                       const at::Tensor& logits, const at::Tensor& other, RunResult& result) {
    HostCopies copies;
    const FinishedPass finished{request_,     result, pass,  outcome,    logits,
                                plan_.target, other,  taps_, gradients_, {stop_, [this] { block_done(); }},
                                copies};
    for (auto& reading : plan_.readings)
      if (reading->teacher_forced() == teacher_forced) reading->finish(finished, result.quantities);
    copies.finish();
  }

  void describe(RunResult& result) const {
    const Pass& pass = plan_.own;
    const ModelInput& input = pass.input.input;
    result.generation = request_.generation;
    result.model = pass.model.model->info();
    result.model_hash = pass.model.model->hash();
    result.adapters = adapters_used(plan_);
    result.available_adapters = plan_.available_adapters;
    result.notes = result.model.notes;
    if (!input.note.empty()) result.notes.push_back(input.note);
    result.hidden_tokens = request_.hidden_tokens;
    if (!result.hidden_tokens.empty())
      result.notes.push_back(fmt::format("{} {}{} hidden", result.hidden_tokens.size(),
                                         result.model.input == InputKind::image ? "patch" : "token",
                                         result.hidden_tokens.size() == 1         ? ""
                                         : result.model.input == InputKind::image ? "es"
                                                                                  : "s"));
    result.muted_heads = request_.muted_heads;
    if (!result.muted_heads.empty())
      result.notes.push_back(fmt::format("{} head{} muted", result.muted_heads.size(),
                                         result.muted_heads.size() == 1 ? "" : "s"));
    result.schedule = plan_.schedule;
    result.device = pass.model.device;
    result.dtype = pass.model.dtype;
    result.threads = at::get_num_threads();
    result.tokens = token_infos(result.model, input);
    if (result.model.input == InputKind::image) {
      result.prefix_tokens = static_cast<int>(input.layout.prefix);
      result.rows = static_cast<int>(input.layout.rows);
      result.columns = static_cast<int>(input.layout.columns);
      result.crop_x = input.crop.x;
      result.crop_y = input.crop.y;
      result.crop_width = input.crop.width;
      result.crop_height = input.crop.height;
    }
  }

  void finish_own(const PassOutcome& outcome, RunResult& result) {
    const Pass& pass = plan_.own;
    result.layers = layer_runs(pass, outcome.blocks);
    const bool focus = !plan_.gradient_layers.empty();
    const auto needs_logits = [](const auto& reading) { return reading->needs_logits(); };
    at::Tensor logits, other;
    if (result.model.has_classifier || std::ranges::any_of(plan_.readings, needs_logits)) {
      const at::AutoGradMode mode(focus);
      logits = pass.model.model->logits(outcome.output, pass.input.input);
      if (logits.defined()) check_finite(logits, *pass.model.model); // there are none without a classifier
    }
    if (logits.defined() && result.model.has_classifier)
      result.predictions = predictions_of(logits, *pass.model.model);
    if (focus) other = take_gradients(outcome.output, logits, result);
    if (const auto& capture = result.model.capture)
      result.query = request_.default_query ? default_query(*capture) : request_.query;
    if (result.model.causal && !focus)
      result.query = request_.default_query ? std::optional(pass.input.tokens - 1) : request_.query;
    finish_readings(pass, false, outcome, logits, other, result);
    taps_.clear();
    gradients_.clear();
  }

  // Mostly from the prefix cache, as the whole input usually ran before tokens were hidden or heads muted.
  WholeInput run_whole_input(const PassOutcome& hidden) {
    const at::NoGradGuard no_grad;
    const Pass& pass = *plan_.whole;
    const Model& model = *pass.model.model;
    const PassOutcome outcome = run_pass(pass, cache_, stop_, {}, [this] { block_done(); });
    WholeInput whole;
    if (model.info().has_classifier)
      whole.predictions = predictions_of(model.logits(outcome.output, pass.input.input), model);
    const at::Tensor all = mean_pooled(model.final_hidden(outcome.output), pass.input.input.mask);
    whole.similarity =
        similarity_target(model.final_hidden(hidden.output), plan_.own.input.input.mask, all).item<double>();
    return whole;
  }

  at::Tensor other_embedding() {
    const PassOutcome outcome = run_pass(*plan_.other, cache_, stop_, {}, [this] { block_done(); });
    return mean_pooled(plan_.other->model.model->final_hidden(outcome.output), plan_.other->input.input.mask);
  }

  // Sets the result's target and query, and gradients_. Returns the mean-pooled second sentence of a
  // similarity.
  at::Tensor take_gradients(const at::Tensor& output, const at::Tensor& logits, RunResult& result) {
    const Pass& pass = plan_.own;
    at::Tensor other;
    if (plan_.other) {
      const at::NoGradGuard no_grad;
      other = other_embedding();
    }
    TargetValue target;
    {
      const at::AutoGradMode gradients(true);
      target = target_value(plan_.target, *pass.model.model, logits, pass.model.model->final_hidden(output),
                            pass.input.input.mask, other);
    }
    result.target = target.words;
    result.target_value = target.value.item<double>();

    std::vector<at::Tensor> points = {output};
    for (const auto& [layer, tap] : taps_) points.push_back(tap.out);
    const std::vector<at::Tensor> gradients = gradients_at(target.value, points);

    result.query = request_.query;
    if (request_.default_query) result.query = only_token_read(gradients[0]);
    std::size_t position = 1;
    for (const auto& [layer, tap] : taps_) gradients_[layer] = gradients[position++];
    return other;
  }

  const RunRequest& request_;
  RunPlan plan_;
  PrefixCache& cache_;
  std::stop_token stop_;
  const RunProgress& progress_;
  std::map<int, AttentionTap> taps_;    // of the layers whose gradient is taken, with their graphs
  std::map<int, at::Tensor> gradients_; // of the target at the attention's output, (1,H,N,d)
  int done_ = 0, total_ = 0;
};

} // namespace

Runner::Runner(std::size_t cache_bytes, std::shared_ptr<ModelStore> models)
    : state_(std::make_unique<State>(cache_bytes, std::move(models))) {}
Runner::~Runner() = default;

void preload(const RunRequest& request, ModelStore& store) {
  cuda_status(); // before all else: it loads CUDA, and the thread of runs may be about to
  const Placement placement = placement_of(request.execution);
  const at::NoGradGuard no_grad;
  load_for(request, placement, store);
}

std::shared_ptr<const RunResult> Runner::run(const RunRequest& request, std::stop_token stop,
                                             const RunProgress& progress) {
  return run_in(placement_of(request.execution), request, std::move(stop), progress);
}

std::shared_ptr<const RunResult> Runner::run_in(const Placement& placement, const RunRequest& request,
                                                std::stop_token stop, const RunProgress& progress) {
  const ThreadCount threads(request.execution.threads);
  const auto run_or_retry = [&] {
    try {
      return attempt(placement, request, stop, progress);
    } catch (const c10::Error&) {
      if (caught_failure(placement.device_name()).kind != Failure::Kind::device_memory) throw;
      state_->cache(placement).clear();
      state_->caches.clear();
      state_->models->release_unused(placement.device_name());
      release_cached_memory(placement.device);
      return attempt(placement, request, std::move(stop), progress);
    }
  };
  return with_remedies(
      {.subject = "run",
       .memory = "use a smaller --image-size or ask for fewer tensors",
       .device_memory = "use a smaller --image-size, a linear kernel, --dtype bfloat16 or --device cpu",
       .other = "try a smaller input or another kernel",
       .device = placement.device_name()},
      run_or_retry);
}

void Runner::release() {
  state_->inputs = {};
  state_->caches.clear();
  state_->models->release_unused();
  for (auto& [device, cache] : state_->device_caches) { // the CPU among them once it has been used
    cache.clear();
    release_cached_memory(c10::Device(device));
  }
  release_freed_memory();
}

std::shared_ptr<const RunResult> Runner::attempt(const Placement& placement, const RunRequest& request,
                                                 std::stop_token stop, const RunProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const at::NoGradGuard no_grad;
  auto result = std::make_shared<RunResult>();
  reset_peak_memory(placement.device);
  reset_peak_resident_bytes();
  PrefixCache& cache = state_->cache(placement);
  // The CPU's cache is not emptied when memory runs out.
  const std::size_t reclaimable = placement.device.is_cpu() ? 0 : cache.bytes();
  RunPlan plan =
      make_run_plan(request, placement, *state_->models, state_->inputs, state_->caches, reclaimable);
  result->preparing_seconds = seconds_since(start);
  Job job(request, std::move(plan), cache, std::move(stop), progress);
  job.run(*result);
  job.require_files();
  job.release_weights();
  result->peak_bytes = peak_resident_bytes();
  const DeviceMemory memory = device_memory(placement.device);
  result->device_bytes = memory.peak;
  result->device_total_bytes = memory.total;
  result->seconds = seconds_since(start);
  return result;
}

} // namespace hydrascope
