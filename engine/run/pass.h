// One forward pass through the blocks. This is the only loop over blocks: runs, measurements and trainings
// all use it. Cached hidden states are not recomputed, and tapped layers pass their q, k, v to a visitor.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/models/transformer/model.h"
#include "engine/run/inputs.h"
#include "engine/run/model_store.h"

namespace hydrascope {

// A kernel with its parameters in one layer of a model.
struct LayerKernel {
  std::shared_ptr<const Kernel> kernel;
  KernelParameters parameters;
  bool own_parameters = false; // trained, from an adapter
};
// The kernel as this model's layers need it: for cross-attention where a capture has recorded that. Throws
// UsageError (unknown kernel).
std::shared_ptr<const Kernel> kernel_for(const ModelInfo& model, const KernelSpec& spec);
// With the kernel's initial parameters, on the CPU. Throws UsageError (unknown kernel).
LayerKernel initial_layer_kernel(const ModelInfo& model, int layer, const KernelSpec& spec);
// With trained parameters if the model has them, else the initial ones, on the model's device. Throws
// UsageError.
LayerKernel layer_kernel(const Model& model, int layer, const KernelSpec& spec);
// The same for layers 0 … specs.size() − 1.
std::vector<LayerKernel> layer_kernels(const Model& model, const std::vector<KernelSpec>& specs);

// Whether the layer runs on the model's own weights, though not by softmax, and no adapter was trained for
// that.
bool is_untrained(const std::vector<AppliedAdapter>& applied, int layer, const LayerKernel& kernel);
// What a result says of such layers of a schedule, "untrained: …"; empty if there is none.
std::string untrained_note(const Model& model, const std::vector<AppliedAdapter>& applied,
                           const Schedule& schedule);
// Adds it to the notes, unless it is empty.
void add_untrained_note(std::vector<std::string>& notes, const AppliedModel& model, const Schedule& schedule);

// A hidden state and how the block that computed it ran.
struct CachedHidden {
  at::Tensor hidden; // (B,N,D), never written to
  std::string path;
  RowCount zero_denominators;
};

// Hidden states by the key of what they depend on, so that a pass starts at the first layer whose input is
// not cached. Evicts the least recently used beyond `limit` bytes.
class PrefixCache {
public:
  explicit PrefixCache(std::size_t limit) : limit_(limit) {}

  std::optional<CachedHidden> find(const std::string& key);
  void insert(const std::string& key, CachedHidden value);
  void clear();

  std::size_t bytes() const { return bytes_; }
  std::size_t size() const { return entries_.size(); }

private:
  struct Entry {
    CachedHidden value;
    std::list<std::string>::iterator use;
  };
  void erase(const std::string& key);

  std::size_t limit_;
  std::size_t bytes_ = 0;
  std::list<std::string> uses_; // most recent first
  std::unordered_map<std::string, Entry> entries_;
};

struct Pass {
  AppliedModel model;
  PreparedInput input;
  std::vector<LayerKernel> layers;     // of the blocks to run: all of the model's, or its first
  std::vector<std::vector<int>> muted; // by layer, ascending; empty: no head is muted
  std::vector<bool> tapped;            // by layer: the visitor is called; these blocks always run
  int first_gradient_layer = 0;        // blocks from here on are differentiable; the number of layers: none
  bool keep_hidden = false;
  bool need_output = true; // false: stop after the last tapped block

  // The first block and its input; undefined: the input is embedded for block 0.
  int first_layer = 0;
  at::Tensor hidden;
  // Gradients, also through the embedding, are on or off as the caller's mode says; first_gradient_layer is
  // ignored.
  bool training = false;
  // By layer: what kernels keep of the tokens before these (ModelInput::first_position); each block adds
  // these. Empty: there are none before.
  std::vector<std::shared_ptr<DecodingState>> states;
  bool for_logits = false; // the last block computes only those tokens that logits() reads
  // false: the outcome has no facts about blocks, and blocks run without a tap, which may be faster.
  bool observed = true;

  // keys[0] of the embedded input, keys[i + 1] of block i's output.
  std::vector<std::string> keys() const;
};

// A pass without gradients that returns its output alone.
Pass plain_pass(std::shared_ptr<const Model> model, std::vector<LayerKernel> layers, ModelInput input = {});

struct PassBlock {
  std::string path;
  double seconds = 0; // of the device
  bool ran = false;   // false: its output was cached or not needed
  std::int64_t zero_denominators = 0;
};

struct PassOutcome {
  at::Tensor output; // of the last block, with its graph where gradients are enabled
  // If kept: the first block's input and each block's output; with their graph only in training.
  std::vector<at::Tensor> hidden;
  std::vector<PassBlock> blocks;
};

// The same input with q, k, v and layer_input detached from the graph.
AttentionInput constant_input(const AttentionInput& input);

// Called after a tapped block with gradients disabled; the tensors of a differentiable block's tap have their
// graph.
using TapVisitor = std::function<void(int layer, const AttentionTap& tap)>;

// By block: whether run_pass() would run it with this cache.
std::vector<bool> blocks_to_run(const Pass& pass, PrefixCache& cache);

// Throws Cancelled when `stop` is requested, and as the model and its kernels. It is polled before each
// block; on a device that has its work queued at most two blocks are unfinished then. The same holds in a
// backward pass through the output, which throws Cancelled, too.
PassOutcome run_pass(const Pass& pass, PrefixCache& cache, const std::stop_token& stop,
                     const TapVisitor& visit, const std::function<void()>& block_done);
// The same without a cache.
PassOutcome run_pass(const Pass& pass, const std::stop_token& stop = {}, const TapVisitor& visit = {});

// Returns if hidden states or logits are finite. Else throws BrokenFile that names the weight, of the model
// or of a kernel, that holds NaN or infinity, or Error if all weights are finite.
void check_finite(const at::Tensor& results, const Model& model);

} // namespace hydrascope
