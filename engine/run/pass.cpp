#include "engine/run/pass.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/all.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/cross_attention.h"
#include "engine/attention/interface/device.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/run/device_clock.h"

namespace hydrascope {
namespace {

struct PassPlan {
  std::vector<std::string> keys;                   // empty without a cache
  std::vector<std::optional<CachedHidden>> cached; // by hidden state; held, so that eviction is harmless
  std::vector<bool> run;                           // by block
  bool embed = false;
};

bool is_tapped(const Pass& pass, std::size_t layer) {
  return layer < pass.tapped.size() && pass.tapped[layer];
}

PassPlan make_plan(const Pass& pass, PrefixCache* cache) {
  const auto layers = pass.layers.size();
  PassPlan plan;
  plan.run.assign(layers, false);
  plan.cached.resize(layers + 1);
  if (cache != nullptr) {
    plan.keys = pass.keys();
    for (std::size_t i = 0; i <= layers; ++i) plan.cached[i] = cache->find(plan.keys[i]);
  }
  const bool independent = pass.model.model->info().capture != nullptr; // layers of a capture
  bool needed = pass.need_output; // whether hidden state i + 1 is needed
  for (std::size_t i = layers; i-- > static_cast<std::size_t>(pass.first_layer);) {
    const bool differentiable = static_cast<int>(i) >= pass.first_gradient_layer;
    plan.run[i] =
        is_tapped(pass, i) || ((needed || pass.keep_hidden) && (differentiable || !plan.cached[i + 1]));
    needed = independent ? pass.need_output : plan.run[i];
  }
  if (independent) needed = std::ranges::find(plan.run, true) != plan.run.end();
  plan.embed = !pass.hidden.defined() && (needed || pass.keep_hidden) && !plan.cached[0];
  return plan;
}

// A block's facts while the pass runs: times and counts are still on the device.
struct BlockRun {
  std::string path;
  bool ran = false;
  std::size_t begin = 0, end = 0; // marks of the pass's timeline
  RowCount zero_denominators;
};

// Keeps the host at most two blocks ahead of a device, so that a stop, which the host polls between blocks,
// takes effect within two blocks. On the CPU a block is done when its call returns.
class BlockQueue {
public:
  explicit BlockQueue(const c10::Device device) : device_(with_index(device)) {}

  // Waits until at most one block is unfinished.
  void wait_for_room() {
    if (unfinished_.size() < most) return;
    unfinished_.front().synchronize();
    unfinished_.pop_front();
  }
  // Called after a block is queued.
  void add() {
    if (device_.is_cpu()) return;
    c10::Event& end = unfinished_.emplace_back(device_.type());
    end.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }

private:
  static constexpr std::size_t most = 2;
  c10::Device device_;
  std::deque<c10::Event> unfinished_; // ends of blocks, the oldest first
};

// Has the backward pass through a block's output poll `stop`, as the forward pass does.
void poll_in_backward(const at::Tensor& output, const std::shared_ptr<BlockQueue>& queue,
                      const std::stop_token& stop) {
  if (!output.requires_grad()) return;
  output.register_hook([queue, stop](const at::Tensor&) {
    queue->wait_for_room();
    if (stop.stop_requested()) throw Cancelled();
    queue->add();
  });
}

class BlockRunner {
public:
  BlockRunner(const Pass& pass, PrefixCache* cache, const TapVisitor& visit, bool caller_gradients)
      : pass_(pass),
        cache_(cache),
        visit_(visit),
        caller_gradients_(caller_gradients),
        timeline_(pass.model.model->device()) {}

  // Reads what the blocks have left on the device.
  std::vector<PassBlock> finished(const std::vector<BlockRun>& runs) {
    std::vector<RowCount> counts;
    for (const BlockRun& run : runs) counts.push_back(run.zero_denominators);
    const std::vector<std::int64_t> zeros = read_rows(counts);
    std::vector<PassBlock> blocks;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const BlockRun& run = runs[i];
      const bool timed = run.ran && pass_.observed;
      blocks.push_back({run.path, timed ? timeline_.seconds(run.begin, run.end) : 0, run.ran, zeros[i]});
    }
    return blocks;
  }

  at::Tensor run(const std::size_t position, const at::Tensor& hidden, const std::string& output_key,
                 BlockRun& block) {
    const int layer = static_cast<int>(position);
    const bool differentiable = pass_.training ? caller_gradients_ : layer >= pass_.first_gradient_layer;
    const LayerKernel& kernel = pass_.layers[position];
    const Model& model = *pass_.model.model;
    AttentionTap tap; // of every observed block, because the outcome states the path that was taken
    tap.reads_attention = differentiable || is_tapped(pass_, position);
    BlockOptions options;
    if (pass_.observed) options.tap = &tap;
    if (position < pass_.muted.size()) options.muted = pass_.muted[position];
    if (position < pass_.states.size()) options.state = pass_.states[position].get();
    options.for_logits = pass_.for_logits && layer + 1 == model.info().layers;
    if (pass_.observed) block.begin = timeline_.mark();
    at::Tensor output;
    {
      // Except in training the weights are constants: the graph starts at the attention's output in the first
      // differentiable block.
      const at::AutoGradMode mode(differentiable);
      output = model.block(layer, hidden, pass_.input.input, *kernel.kernel, kernel.parameters, options);
    }
    model.require_files(); // before the output is cached
    block.ran = true;
    if (!pass_.observed) return output;
    block.end = timeline_.mark();
    block.path = tap.path;
    block.zero_denominators = tap.zero_denominators;
    // Not for a differentiable block: it runs on a different path and must run again for its graph.
    if (cache_ != nullptr && !differentiable)
      cache_->insert(output_key, {output, tap.path, tap.zero_denominators});
    if (is_tapped(pass_, position) && visit_) visit_(layer, tap);
    return output;
  }

private:
  const Pass& pass_;
  PrefixCache* cache_; // may be null
  const TapVisitor& visit_;
  bool caller_gradients_;
  DeviceTimeline timeline_;
};

PassOutcome run(const Pass& pass, PrefixCache* cache, const std::stop_token& stop, const TapVisitor& visit,
                const std::function<void()>& block_done) {
  const bool caller_gradients = at::GradMode::is_enabled();
  const at::AutoGradMode mode(pass.training && caller_gradients);
  const PassPlan plan = make_plan(pass, cache);
  BlockRunner blocks(pass, cache, visit, caller_gradients);
  PassOutcome outcome;
  std::vector<BlockRun> runs(pass.layers.size());
  // Outlives the pass in the graph's hooks.
  const auto queue = std::make_shared<BlockQueue>(pass.model.model->device());

  const auto poll = [&] {
    if (stop.stop_requested()) throw Cancelled();
  };
  const auto keep = [&](const at::Tensor& hidden) {
    if (pass.keep_hidden) outcome.hidden.push_back(pass.training ? hidden : hidden.detach());
  };
  poll();
  at::Tensor hidden = pass.hidden;
  if (plan.embed) {
    hidden = pass.model.model->embed(pass.input.input);
    pass.model.model->require_files();
    if (cache != nullptr) cache->insert(plan.keys[0], {hidden, {}, 0});
  } else if (plan.cached[0]) {
    hidden = plan.cached[0]->hidden;
  }
  keep(hidden);

  for (auto i = static_cast<std::size_t>(pass.first_layer); i < pass.layers.size(); ++i) {
    BlockRun& block = runs[i];
    if (plan.run[i]) {
      if (stop.stop_possible()) queue->wait_for_room();
      poll();
      hidden = blocks.run(i, hidden, plan.keys.empty() ? std::string() : plan.keys[i + 1], block);
      if (stop.stop_possible()) {
        queue->add();
        if (!pass.training) poll_in_backward(hidden, queue, stop);
      }
      if (block_done) block_done();
    } else if (plan.cached[i + 1]) {
      const CachedHidden& known = *plan.cached[i + 1];
      hidden = known.hidden;
      block.path = known.path;
      block.zero_denominators = known.zero_denominators;
    }
    keep(hidden);
  }
  poll();
  outcome.output = hidden;
  outcome.blocks = blocks.finished(runs);
  return outcome;
}

} // namespace

std::vector<std::string> Pass::keys() const {
  std::vector<std::string> keys = {sha256_of_text(model.embedding_key() + '|' + input.key)};
  const bool independent = model.model->info().capture != nullptr; // layers of a capture
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const int layer = static_cast<int>(i);
    const std::string mode = layer >= first_gradient_layer ? "|differentiable|" : "|";
    std::string key = (independent ? fmt::format("{}|{}", keys.front(), i) : keys.back()) + mode +
                      model.layer_key(layer, layers[i].kernel->spec());
    if (i < muted.size() && !muted[i].empty()) key += fmt::format("|muted {}", fmt::join(muted[i], ","));
    keys.push_back(sha256_of_text(key));
  }
  return keys;
}

AttentionInput constant_input(const AttentionInput& input) {
  AttentionInput constant = input;
  constant.q = input.q.detach();
  constant.k = input.k.detach();
  constant.v = input.v.detach();
  if (input.layer_input.defined()) constant.layer_input = input.layer_input.detach();
  return constant;
}

Pass plain_pass(std::shared_ptr<const Model> model, std::vector<LayerKernel> layers, ModelInput input) {
  Pass pass;
  pass.model.model = std::move(model);
  pass.input.input = std::move(input);
  pass.first_gradient_layer = static_cast<int>(layers.size());
  pass.layers = std::move(layers);
  return pass;
}

std::vector<bool> blocks_to_run(const Pass& pass, PrefixCache& cache) { return make_plan(pass, &cache).run; }

PassOutcome run_pass(const Pass& pass, PrefixCache& cache, const std::stop_token& stop,
                     const TapVisitor& visit, const std::function<void()>& block_done) {
  return run(pass, &cache, stop, visit, block_done);
}

PassOutcome run_pass(const Pass& pass, const std::stop_token& stop, const TapVisitor& visit) {
  return run(pass, nullptr, stop, visit, {});
}

std::shared_ptr<const Kernel> kernel_for(const ModelInfo& model, const KernelSpec& spec) {
  std::shared_ptr<const Kernel> kernel = make_kernel(spec);
  const bool cross = model.capture != nullptr && model.capture->queries > 0;
  return cross ? for_cross_attention(std::move(kernel)) : kernel;
}

LayerKernel initial_layer_kernel(const ModelInfo& model, const int layer, const KernelSpec& spec) {
  LayerKernel made;
  made.kernel = kernel_for(model, spec);
  made.parameters =
      made.kernel->initial_parameters({.heads = model.heads,
                                       .head_width = model.width / model.heads,
                                       .key_heads = model.key_heads < model.heads ? model.key_heads : 0},
                                      layer);
  return made;
}

LayerKernel layer_kernel(const Model& model, const int layer, const KernelSpec& spec) {
  KernelParameters trained = model.kernel_parameters(layer, spec);
  if (!trained.empty()) return {kernel_for(model.info(), spec), std::move(trained), true};
  LayerKernel initial = initial_layer_kernel(model.info(), layer, spec);
  const at::Device device = model.device();
  for (auto& [name, parameter] : initial.parameters) parameter = parameter.to(device);
  return initial;
}

std::vector<LayerKernel> layer_kernels(const Model& model, const std::vector<KernelSpec>& specs) {
  std::vector<LayerKernel> kernels;
  for (const KernelSpec& spec : specs)
    kernels.push_back(layer_kernel(model, static_cast<int>(kernels.size()), spec));
  return kernels;
}

bool is_untrained(const std::vector<AppliedAdapter>& applied, const int layer, const LayerKernel& kernel) {
  return !kernel.kernel->info().exact_softmax && !kernel.own_parameters &&
         trained_adapter(applied, layer, kernel.kernel->spec()) == nullptr;
}

std::string untrained_note(const Model& model, const std::vector<AppliedAdapter>& applied,
                           const Schedule& schedule) {
  std::vector<std::string> kernels;
  std::size_t count = 0;
  for (int layer = -1; const KernelSpec& spec : schedule.layers) {
    ++layer;
    const bool own_parameters = !model.kernel_parameters(layer, spec).empty();
    const LayerKernel kernel{kernel_for(model.info(), spec), {}, own_parameters}; // initial ones cost time
    if (!is_untrained(applied, layer, kernel)) continue;
    ++count;
    std::string name = kernel.kernel->spec().label();
    if (std::ranges::find(kernels, name) == kernels.end()) kernels.push_back(std::move(name));
  }
  if (count == 0) return {};
  return fmt::format("untrained: no adapter for {} in {} of {} layers", fmt::join(kernels, ", "), count,
                     schedule.layers.size());
}

void add_untrained_note(std::vector<std::string>& notes, const AppliedModel& model,
                        const Schedule& schedule) {
  std::string note = untrained_note(*model.model, model.adapters, schedule);
  if (!note.empty()) notes.push_back(std::move(note));
}

std::optional<CachedHidden> PrefixCache::find(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  uses_.splice(uses_.begin(), uses_, found->second.use);
  return found->second.value;
}

void PrefixCache::insert(const std::string& key, CachedHidden value) {
  erase(key);
  const std::size_t size = value.hidden.nbytes();
  if (size > limit_) return;
  while (bytes_ + size > limit_) erase(std::string(uses_.back()));
  uses_.push_front(key);
  entries_.emplace(key, Entry{std::move(value), uses_.begin()});
  bytes_ += size;
}

void PrefixCache::clear() {
  entries_.clear();
  uses_.clear();
  bytes_ = 0;
}

void PrefixCache::erase(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  bytes_ -= found->second.value.hidden.nbytes();
  uses_.erase(found->second.use);
  entries_.erase(found);
}

void check_finite(const at::Tensor& results, const Model& model) {
  if (at::isfinite(results).all().item<bool>()) return;
  const std::string folder = model.info().folder.string();
  // Only after a failure: checking all weights before every run would take as long as a run.
  for (const auto& [name, tensor] : model.tensors())
    if (at::isFloatingType(tensor.scalar_type()) && !at::isfinite(tensor).all().item<bool>())
      throw BrokenFile(folder, fmt::format("\"{}\" holds NaN or infinity", name),
                       "get the model (or the adapter over it) again");
  throw Error(folder, "its results are no longer finite although all weights are",
              "try --dtype float32 or other kernels");
}

} // namespace hydrascope
