#include "engine/runtime/pass.h"

#include <chrono>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/muted_kernel.h"
#include "engine/plain/error.h"
#include "engine/plain/paths.h"

namespace hydrascope {
namespace {

struct PassPlan {
  std::vector<std::string> keys;
  std::vector<std::optional<CachedHidden>> known; // by hidden state, held so that nothing evicts it meanwhile
  std::vector<bool> run;                          // by block
  bool embed = false;
};

PassPlan make_plan(const Pass& pass, PrefixCache& cache) {
  const auto layers = pass.layers.size();
  PassPlan plan;
  plan.keys = pass.keys();
  plan.run.assign(layers, false);
  for (const std::string& key : plan.keys) plan.known.push_back(cache.find(key));
  bool needed = pass.need_output; // whether hidden state i + 1 is
  for (std::size_t i = layers; i-- > 0;) {
    const bool differentiable = static_cast<int>(i) >= pass.first_gradient_layer;
    plan.run[i] = pass.tapped[i] || ((needed || pass.keep_hidden) && (differentiable || !plan.known[i + 1]));
    needed = plan.run[i];
  }
  plan.embed = (needed || pass.keep_hidden) && !plan.known[0];
  return plan;
}

class BlockRunner {
public:
  BlockRunner(const Pass& pass, PrefixCache& cache, const TapVisitor& visit)
      : pass_(pass), cache_(cache), visit_(visit) {}

  at::Tensor run(int layer, const at::Tensor& hidden, const std::string& output_key, PassBlock& block) {
    const bool differentiable = layer >= pass_.first_gradient_layer;
    const LayerKernel& kernel = pass_.layers[static_cast<std::size_t>(layer)];
    const auto running = mute_heads(kernel.kernel, pass_.muted[static_cast<std::size_t>(layer)]);
    AttentionTap tap; // always passed: the result says which path really ran
    tap.reads_attention = differentiable || pass_.tapped[static_cast<std::size_t>(layer)];
    const auto start = std::chrono::steady_clock::now();
    at::Tensor output;
    {
      // The weights are constants: the graph starts at the attention's output in the first differentiable
      // block.
      const at::AutoGradMode mode(differentiable);
      output = pass_.model.model->block(layer, hidden, pass_.input.input, *running, kernel.parameters, &tap);
    }
    block.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    block.ran = true;
    block.path = tap.path;
    block.zero_denominators = tap.zero_denominators;
    // A differentiable block computes on another path and is needed for its graph, so its output serves no
    // other run.
    if (!differentiable) cache_.insert(output_key, {output, tap.path, tap.zero_denominators});
    if (pass_.tapped[static_cast<std::size_t>(layer)] && visit_) visit_(layer, tap);
    return output;
  }

private:
  const Pass& pass_;
  PrefixCache& cache_;
  const TapVisitor& visit_;
};

} // namespace

LayerKernel layer_kernel(const Model& model, int layer, const KernelSpec& spec) {
  LayerKernel made;
  made.kernel = make_kernel(spec);
  made.parameters = model.kernel_parameters(layer, spec);
  made.own_parameters = !made.parameters.empty();
  if (!made.own_parameters) {
    const ModelInfo& info = model.info();
    made.parameters = made.kernel->initial_parameters(info.heads, info.width / info.heads, layer);
  }
  return made;
}

std::vector<std::string> Pass::keys() const {
  std::vector<std::string> keys = {sha256_of_text(model.embedding_key() + '|' + input.key)};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const int layer = static_cast<int>(i);
    const std::string mode = layer >= first_gradient_layer ? "|differentiable|" : "|";
    std::string key = keys.back() + mode + model.layer_key(layer, layers[i].kernel->spec());
    if (!muted[i].empty()) key += fmt::format("|muted {}", fmt::join(muted[i], ","));
    keys.push_back(sha256_of_text(key));
  }
  return keys;
}

std::vector<bool> blocks_to_run(const Pass& pass, PrefixCache& cache) { return make_plan(pass, cache).run; }

PassOutcome run_pass(const Pass& pass, PrefixCache& cache, const std::stop_token& stop,
                     const TapVisitor& visit, const std::function<void()>& block_done) {
  const at::NoGradGuard no_grad;
  const PassPlan plan = make_plan(pass, cache);
  BlockRunner blocks(pass, cache, visit);
  PassOutcome outcome;
  outcome.blocks.resize(pass.layers.size());

  const auto poll = [&] {
    if (stop.stop_requested()) throw Cancelled();
  };
  poll();
  at::Tensor hidden;
  if (plan.embed) {
    hidden = pass.model.model->embed(pass.input.input);
    cache.insert(plan.keys[0], {hidden, {}, 0});
  } else if (plan.known[0]) {
    hidden = plan.known[0]->hidden;
  }
  if (pass.keep_hidden) outcome.hidden.push_back(hidden);

  for (std::size_t i = 0; i < pass.layers.size(); ++i) {
    PassBlock& block = outcome.blocks[i];
    if (plan.run[i]) {
      poll();
      hidden = blocks.run(static_cast<int>(i), hidden, plan.keys[i + 1], block);
      if (block_done) block_done();
    } else if (plan.known[i + 1]) {
      const CachedHidden& cached = *plan.known[i + 1];
      hidden = cached.hidden;
      block.path = cached.path;
      block.zero_denominators = cached.zero_denominators;
    }
    if (pass.keep_hidden) outcome.hidden.push_back(hidden.detach());
  }
  poll();
  outcome.output = hidden;
  return outcome;
}

} // namespace hydrascope
