// One forward pass through the blocks: what is cached is not computed, what is asked for is tapped.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "engine/models/model.h"
#include "engine/runtime/model_store.h"
#include "engine/runtime/prefix_cache.h"
#include "engine/runtime/run_input.h"

namespace hydrascope {

// A kernel with the parameters it runs with in one layer.
struct LayerKernel {
  std::shared_ptr<const Kernel> kernel;
  KernelParameters parameters;
  bool own_parameters = false; // trained ones that an adapter brought
};
// Trained parameters where the model has them, else the kernel's initial ones. Throws UsageError (unknown
// kernel).
LayerKernel layer_kernel(const Model& model, int layer, const KernelSpec& spec);

struct Pass {
  AppliedModel model;
  PreparedInput input;
  std::vector<LayerKernel> layers;
  std::vector<std::vector<int>> muted; // by layer, ascending: heads that say nothing
  std::vector<bool> tapped;            // whose attention the visitor wants to see; these blocks always run
  int first_gradient_layer = 0;        // blocks from here on are differentiable; the number of layers: none
  bool keep_hidden = false;
  bool need_output = true; // false: stop after the last tapped block

  // keys[i]: what hidden state i depends on (0 = embedded input, i + 1 = output of block i).
  std::vector<std::string> keys() const;
};

struct PassBlock {
  std::string path;
  double seconds = 0;
  bool ran = false; // false: the prefix cache had its output
  std::int64_t zero_denominators = 0;
};

struct PassOutcome {
  at::Tensor output;              // of the last block, with its graph where gradients are enabled
  std::vector<at::Tensor> hidden; // all of them, if kept
  std::vector<PassBlock> blocks;
};

// Called after a tapped block, gradients disabled; in differentiable blocks the tap's tensors carry their
// graph.
using TapVisitor = std::function<void(int layer, const AttentionTap& tap)>;

// Blocks that `run_pass` would run, given what is cached now.
std::vector<bool> blocks_to_run(const Pass& pass, PrefixCache& cache);

// Throws Cancelled when `stop` is requested (polled before each block) and as the model and its kernels.
PassOutcome run_pass(const Pass& pass, PrefixCache& cache, const std::stop_token& stop,
                     const TapVisitor& visit, const std::function<void()>& block_done);

} // namespace hydrascope
