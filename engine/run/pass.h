// One forward pass through the blocks, the only loop over them: what is cached is not computed, what is asked
// for is tapped. Runs, measurements and trainings all go through it.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "engine/run/layer_kernel.h"
#include "engine/run/model_store.h"
#include "engine/run/prefix_cache.h"
#include "engine/run/run_input.h"

namespace hydrascope {

struct Pass {
  AppliedModel model;
  PreparedInput input;
  std::vector<LayerKernel> layers;     // of the blocks to run: all, or those in front
  std::vector<std::vector<int>> muted; // by layer, ascending: heads that say nothing; empty: none
  std::vector<bool> tapped;            // whose attention the visitor wants to see; these blocks always run
  int first_gradient_layer = 0;        // blocks from here on are differentiable; the number of layers: none
  bool keep_hidden = false;
  bool need_output = true; // false: stop after the last tapped block

  // Where the pass begins: the block, and what enters it; undefined: the input is embedded for block 0.
  int first_layer = 0;
  at::Tensor hidden;
  // Gradients as the caller's mode says, through the embedding, too: first_gradient_layer means nothing.
  bool training = false;
  bool for_logits = false; // the model's last block gives what its logits() reads alone
  // false: nothing is told of a block but its output, and nothing that could look is compiled into it.
  bool observed = true;

  // keys[i]: what hidden state i depends on (0 = embedded input, i + 1 = output of block i).
  std::vector<std::string> keys() const;
};

// A pass without gradients of which the output alone is needed.
Pass plain_pass(std::shared_ptr<const Model> model, std::vector<LayerKernel> layers, ModelInput input = {});

struct PassBlock {
  std::string path;
  double seconds = 0;
  bool ran = false; // false: the prefix cache had its output
  std::int64_t zero_denominators = 0;
};

struct PassOutcome {
  at::Tensor output; // of the last block, with its graph where gradients are enabled
  // If kept: what enters the first block and what each block gives; with their graph in training alone.
  std::vector<at::Tensor> hidden;
  std::vector<PassBlock> blocks;
};

// The same q, k, v as constants: nothing read off a layer belongs to the gradient's graph.
AttentionInput constant_input(const AttentionInput& input);

// Called after a tapped block, gradients disabled; in differentiable blocks the tap's tensors carry their
// graph.
using TapVisitor = std::function<void(int layer, const AttentionTap& tap)>;

// Blocks that `run_pass` would run, given what is cached now.
std::vector<bool> blocks_to_run(const Pass& pass, PrefixCache& cache);

// Throws Cancelled when `stop` is requested (polled before each block) and as the model and its kernels.
PassOutcome run_pass(const Pass& pass, PrefixCache& cache, const std::stop_token& stop,
                     const TapVisitor& visit, const std::function<void()>& block_done);
// The same with nothing cached.
PassOutcome run_pass(const Pass& pass, const std::stop_token& stop = {}, const TapVisitor& visit = {});

} // namespace hydrascope
