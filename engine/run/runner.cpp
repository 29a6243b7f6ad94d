#include "engine/run/runner.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/process.h"
#include "engine/run/execution.h"
#include "engine/run/finite_check.h"
#include "engine/run/quantities/deletion_reading.h"
#include "engine/run/quantities/focus.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/run_plan.h"
#include "engine/run/run_result.h"
#include "engine/run/tensor_array.h"

namespace hydrascope {

struct Runner::State {
  State(std::size_t cache_bytes, std::shared_ptr<ModelStore> shared)
      : models(std::move(shared)), cache(cache_bytes) {}
  std::shared_ptr<ModelStore> models;
  InputPreparer inputs;
  PrefixCache cache;
  HeadRowCache facts;
};

namespace {

// One request on its way through its passes.
class Job {
public:
  Job(const RunRequest& request, RunPlan plan, PrefixCache& cache, HeadRowCache& facts, std::stop_token stop,
      const RunProgress& progress)
      : request_(request),
        plan_(std::move(plan)),
        cache_(cache),
        facts_(facts),
        stop_(std::move(stop)),
        progress_(progress) {
    plan_.own.readings.stop = stop_;
    if (plan_.teacher) plan_.teacher->readings.stop = stop_;
    count(plan_.own.pass);
    if (plan_.teacher) count(plan_.teacher->pass);
    if (plan_.other) count(*plan_.other);
    if (plan_.whole) count(*plan_.whole);
    if (request_.asks.timed_passes > 0)
      total_ += (request_.asks.timed_passes + 1) * static_cast<int>(plan_.own.pass.layers.size());
    if (!request_.asks.deletion) return;
    const Pass& pass = plan_.own.pass;
    candidates_ = deletion_candidates(request_, pass.input, pass.model.model->info());
    total_ += static_cast<int>(pass.layers.size()) *
              deletion_passes(request_.asks.deletion->steps, static_cast<std::int64_t>(candidates_.size()));
  }

  void run(RunResult& result) {
    describe(result);
    if (request_.asks.timed_passes > 0) result.timed = timed_passes(); // while nothing else is held
    const PassOutcome outcome = pass_through(plan_.own);
    finish_own(outcome, result);
    if (plan_.whole) result.whole = look_at_whole(outcome);
    if (plan_.teacher) pass_through(*plan_.teacher);
    result.tables = head_tables(plan_, request_.asks.head_tables);
    if (const auto& similar = plan_.own.readings.similar_heads)
      result.similar_heads = similar_heads(*similar, plan_.own.pass.layers, stop_);
    if (const auto& rollout = plan_.own.readings.rollout)
      result.rollout = RolloutResult{rollout->ask, rollout->magnitudes, to_array(rollout->product)};
    for (const AttentionRowAsk& ask : request_.asks.attention_rows) {
      const auto& rows = plan_.own.readings.delivered_rows;
      const auto row =
          std::find_if(rows.begin(), rows.end(), [&](const auto& each) { return each.ask == ask; });
      if (row != rows.end()) result.attention_rows.push_back(*row);
    }
    result.weights = weights_in_order(plan_);
    result.vectors = vectors_in_order(plan_);
    result.tiles = tiles_in_order(plan_);
    for (WeightsResult& weights : result.weights) {
      const auto layer = static_cast<std::size_t>(weights.layer);
      if (!weights.teacher_forced && weights.kernel == result.layers[layer].kernel)
        weights.untrained = result.layers[layer].untrained;
    }
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

  PassOutcome pass_through(PlannedPass& planned) {
    take_known_heads(planned.readings, facts_);
    PassOutcome outcome = run_pass(
        planned.pass, cache_, stop_,
        [&](int layer, const AttentionTap& tap) {
          read_layer(planned.readings, facts_, planned.pass, layer, tap);
        },
        [this] { block_done(); });
    if (outcome.output.defined()) check_finite(outcome.output, *planned.pass.model.model);
    return outcome;
  }

  void describe(RunResult& result) const {
    const Pass& pass = plan_.own.pass;
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
    result.device = "cpu";
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
      if (request_.asks.pixels) result.pixels = to_array(input.pixels);
    }
  }

  void finish_own(const PassOutcome& outcome, RunResult& result) {
    const Pass& pass = plan_.own.pass;
    result.layers = layer_runs(pass, outcome.blocks);
    for (const at::Tensor& hidden : outcome.hidden) result.hidden.push_back(to_array(hidden));

    const bool focus = !plan_.own.readings.focus_layers.empty();
    at::Tensor logits;
    if (result.model.has_classifier || request_.asks.token_logits) {
      const at::AutoGradMode mode(focus);
      logits = pass.model.model->logits(outcome.output, pass.input.input);
    }
    if (logits.defined()) {
      result.logits = to_array(logits);
      if (result.model.has_classifier) result.predictions = predictions_of(logits, result.model);
    }
    if (focus) read_focus(outcome.output, logits, result);
  }

  // The first pass warms up: it packs weights and wakes threads.
  std::vector<std::vector<double>> timed_passes() {
    Pass pass = plan_.own.pass;
    pass.tapped.assign(pass.layers.size(), false);
    pass.first_gradient_layer = static_cast<int>(pass.layers.size());
    pass.keep_hidden = false;
    pass.need_output = true;
    PrefixCache nothing(0);
    std::vector<std::vector<double>> timed;
    for (int turn = 0; turn <= request_.asks.timed_passes; ++turn) {
      const PassOutcome outcome = run_pass(pass, nothing, stop_, {}, [this] { block_done(); });
      if (turn == 0) continue;
      std::vector<double>& seconds = timed.emplace_back();
      for (const PassBlock& block : outcome.blocks) seconds.push_back(block.seconds);
    }
    return timed;
  }

  // Mostly from the prefix cache: the input was shown before something of it was hidden or muted.
  WholeInput look_at_whole(const PassOutcome& hidden) {
    const at::NoGradGuard no_grad;
    const Pass& pass = *plan_.whole;
    const Model& model = *pass.model.model;
    const PassOutcome outcome = run_pass(pass, cache_, stop_, {}, [this] { block_done(); });
    WholeInput whole;
    if (model.info().has_classifier)
      whole.predictions = predictions_of(model.logits(outcome.output, pass.input.input), model.info());
    const at::Tensor all = mean_pooled(model.final_hidden(outcome.output), pass.input.input.mask);
    whole.similarity =
        similarity_target(model.final_hidden(hidden.output), plan_.own.pass.input.input.mask, all)
            .item<double>();
    return whole;
  }

  at::Tensor other_embedding() {
    const PassOutcome outcome = run_pass(*plan_.other, cache_, stop_, {}, [this] { block_done(); });
    return mean_pooled(plan_.other->model.model->final_hidden(outcome.output), plan_.other->input.input.mask);
  }

  void read_focus(const at::Tensor& output, const at::Tensor& logits, RunResult& result) {
    const Pass& pass = plan_.own.pass;
    at::Tensor other;
    if (plan_.other) {
      const at::NoGradGuard no_grad;
      other = other_embedding();
    }
    TargetValue target;
    {
      const at::AutoGradMode gradients(true);
      target = target_value(plan_.target, result.model, logits, pass.model.model->final_hidden(output),
                            pass.input.input.mask, other);
    }
    result.target = target.words;
    result.target_value = target.value.item<double>();

    auto& taps = plan_.own.readings.focus_taps;
    std::vector<at::Tensor> points = {output};
    for (const auto& [layer, tap] : taps) points.push_back(tap.out);
    const std::vector<at::Tensor> gradients = gradients_at(target.value, points);

    result.query = request_.query;
    if (request_.default_query)
      result.query = reads_first_token_alone(gradients[0]) ? std::optional<std::int64_t>(0) : std::nullopt;
    std::map<int, at::Tensor> gradient_of;
    std::size_t position = 1;
    for (const auto& [layer, tap] : taps) gradient_of[layer] = gradients[position++];
    add_gradients(plan_.own.readings, gradient_of);
    for (const int layer : request_.asks.focus_layers) {
      if (stop_.stop_requested()) throw Cancelled();
      const AttentionTap& tap = taps.at(layer);
      const LayerKernel& kernel = pass.layers[static_cast<std::size_t>(layer)];
      const FocusMap map = focus_map(*kernel.kernel, constant_input(tap.input), kernel.parameters, tap.out,
                                     gradient_of.at(layer), result.query);
      result.focus.push_back({layer, to_array(map.contributions), map.total, map.share, map.zero_gradient});
    }
    if (const auto& ask = request_.asks.deletion)
      result.deletion =
          measure_deletion(*ask, result, gradient_of.at(ask->layer), output.detach(), logits, other);
  }

  DeletionResult measure_deletion(const DeletionAsk& ask, const RunResult& result, const at::Tensor& gradient,
                                  const at::Tensor& output, const at::Tensor& logits,
                                  const at::Tensor& other) {
    const Pass& pass = plan_.own.pass;
    const AttentionTap& tap = plan_.own.readings.focus_taps.at(ask.layer);
    const LayerKernel& kernel = pass.layers[static_cast<std::size_t>(ask.layer)];
    const FocusMap map = focus_map(*kernel.kernel, constant_input(tap.input), kernel.parameters, tap.out,
                                   gradient, result.query);
    const Array contributions = to_array(map.contributions);
    const CheckedTarget target = fixed_target(plan_.target, logits);
    DeletionResult deletion =
        deletion_curves(ask, contributions.values, candidates_,
                        deletion_reading(target, *pass.model.model, pass.input.input, output, other),
                        deletion_probe(pass, target, other, stop_, [this] { block_done(); }));
    deletion.target = result.target;
    return deletion;
  }

  const RunRequest& request_;
  RunPlan plan_;
  PrefixCache& cache_;
  HeadRowCache& facts_;
  std::stop_token stop_;
  const RunProgress& progress_;
  std::vector<std::int64_t> candidates_; // of a deletion curve
  int done_ = 0, total_ = 0;
};

} // namespace

Runner::Runner(std::size_t cache_bytes, std::shared_ptr<ModelStore> models)
    : state_(std::make_unique<State>(cache_bytes, std::move(models))) {}
Runner::~Runner() = default;

std::shared_ptr<const RunResult> Runner::run(const RunRequest& request, std::stop_token stop,
                                             const RunProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  check_device(request.execution.device);
  const ThreadCount threads(request.execution.threads);
  try {
    const at::NoGradGuard no_grad;
    auto result = std::make_shared<RunResult>();
    Job job(request, make_run_plan(request, *state_->models, state_->inputs, state_->facts), state_->cache,
            state_->facts, std::move(stop), progress);
    job.run(*result);
    result->peak_bytes = peak_resident_bytes();
    result->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw Error("run", text.substr(0, text.find('\n')), "try a smaller input or another kernel");
  } catch (const std::bad_alloc&) {
    throw Error("run", "out of memory", "use a smaller --image-size or ask for fewer tensors");
  }
}

} // namespace hydrascope
