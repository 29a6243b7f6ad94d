// The interface of an attention kernel, and the registry of all kernels. A kernel is one class, one line in
// registry.cpp and one row in the parity test's table.
//
// Shapes: B batch, H heads, N tokens, d head width, D = H·d model width.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel_info.h"
#include "engine/attention/interface/row_count.h"

namespace hydrascope {

// The tokens of an image: `prefix` tokens (class, distillation), then rows × columns patches. Text: rows =
// columns = 0.
struct TokenLayout {
  std::int64_t prefix = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// Trained or initial parameters by the names of the command line's `attend`:
// query_map.weight (H,d,d) with y = x·W, query_map.bias (H,d), key_map.* of as many key/value heads,
// norm.weight, norm.bias (D), omega (m,d).
using KernelParameters = std::map<std::string, at::Tensor>;

// The heads that parameters are made for.
struct HeadShape {
  std::int64_t heads = 1, head_width = 1; // H, d
  std::int64_t key_heads = 0;             // of AttentionInput

  std::int64_t of_keys() const { return key_heads == 0 ? heads : key_heads; }
};

// The input of a kernel.
struct AttentionInput {
  at::Tensor q, k, v; // (B,H,N,d), after their projections
  at::Tensor
      layer_input; // (B,N,D), the attention module's own input, needed by poly-nl only; may be undefined
  at::Tensor mask; // (B,N) bool, true = real token; undefined = all real
  bool causal = false;
  // Grouped heads: k and v hold each of so many key/value heads H/key_heads times in a row, for the heads of
  // q that share it. 0: every head has its own.
  std::int64_t key_heads = 0;
  TokenLayout layout = {};
  // Cross-attention: the first so many tokens are queries alone, whose k and v are 0, the others keys alone,
  // whose q is 0. 0: every token is both. Only a kernel for_cross_attention() runs on such an input.
  std::int64_t queries = 0;
};

// An input without its data, for supports(), plan() and cost().
struct AttentionShape {
  std::int64_t batch = 1, heads = 1, tokens = 1, head_width = 1;
  at::ScalarType dtype = at::kFloat;
  at::DeviceType device = at::kCPU;
  at::DeviceIndex device_index = -1; // −1: the current device of its type
  bool has_layer_input = false;
  bool has_mask = false;
  bool causal = false;
  bool gradients = false;     // q, k, v or a parameter needs a gradient: nothing may be overwritten
  std::int64_t key_heads = 0; // of AttentionInput
  TokenLayout layout = {};
  std::int64_t queries = 0; // of AttentionInput
};
AttentionShape shape_of(const AttentionInput& input, const KernelParameters& parameters = {});
inline HeadShape heads_of(const AttentionShape& shape) {
  return {shape.heads, shape.head_width, shape.key_heads};
}
// D = H·d.
inline double model_width(const AttentionShape& shape) {
  return static_cast<double>(shape.heads) * static_cast<double>(shape.head_width);
}
// Bytes of q, k and v, read once, and of the output, written once.
inline double bytes_moved(const AttentionShape& shape) {
  return 4.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.tokens) * model_width(shape) *
         static_cast<double>(c10::elementSize(shape.dtype));
}

struct Support {
  bool ok = true;
  std::string reason; // why not, one sentence for the user
};

// How a kernel computes its output.
enum class Path {
  in_blocks,           // LibTorch's operations, block by block of tokens: memory stays O(N)
  at_once,             // the same on all tokens at once: a graph keeps all intermediate results anyway
  fused_cpu,           // our own loops
  fused_cuda,          // our own kernels
  fused_cuda_training, // the same, with the gradients of q, k and v
  sdpa                 // LibTorch's scaled_dot_product_attention
};
// The path's name for users: "composed", "fused cpu", "fused cuda", "LibTorch sdpa".
const char* path_name(Path path);

// Whether an input is supported, and by which path it runs.
struct Plan {
  Support support = {};
  Path path = Path::in_blocks;
};

// The linear maps y = x·W + b of each head's queries and keys that a kernel starts with, and the parameters
// for run() on q and k to which the maps have been applied.
struct LeadingMaps {
  at::Tensor query_weight, key_weight; // (H,d,d); of keys as many as key/value heads
  at::Tensor query_bias, key_bias;     // (H,d) or undefined: 0
  KernelParameters others;
};

struct AttentionOutput {
  // (B,H,N,d), before finish(); rows of masked queries are 0. In q's type; in float32 where q's is a half
  // type and finish() is yet to normalise it.
  at::Tensor out;
  std::string path = {};           // the path that ran: path_name() or more exactly
  RowCount zero_denominators = {}; // rows set to zero because their normaliser was 0
};

// What a Hydra kernel computes instead of a weight matrix (Hydra paper, section 3.4).
struct GlobalVector {
  at::Tensor vector; // (B,D), Σ_t φ(K)_t ⊙ V_t
  at::Tensor gate;   // (B,R,D), φ(Q) of the requested query rows: out_c = gate_c ⊙ vector
};

struct Cost {
  double multiply_accumulates = 0; // the papers' "FLOPs", for the attention operation alone
  double bytes = 0;                // q, k, v read once and the output written once
  double saved = 0;                // multiply-accumulates of features that equal another's

  double computed() const { return multiply_accumulates - saved; }
};

class DecodingState; // decoding.h
using DecodingTensors = std::map<std::string, at::Tensor>;

class Kernel {
public:
  virtual ~Kernel() = default;

  const KernelInfo& info() const; // as kernel_info(spec())
  const KernelSpec& spec() const { return spec_; }

  // Whether the input is supported, and its path: the one decision behind supports() and run().
  virtual Plan plan(const AttentionShape& shape) const = 0;
  Support supports(const AttentionShape& shape) const { return plan(shape).support; }

  // h, the number of heads of weights(): the kernel's own (`heads=`), by default the model's.
  virtual std::int64_t weight_heads(const AttentionShape& shape) const;

  // Initial values of the trainable parameters (empty without any), and the random numbers that define a
  // kernel (Performer's ω; see fixed_parameters). Different in each layer. float32, CPU.
  virtual KernelParameters initial_parameters(const HeadShape& shape, int layer = 0) const;
  // The names among initial_parameters() that are not trained.
  virtual std::vector<std::string> fixed_parameters() const { return {}; }

  // The maps that a model may fold into its projections of q and k (W·W_q, W·W_k), which saves a third of a
  // trained linear kernel's products. nullopt if there are none, the parameters lack them, or grouped heads
  // share one map with their keys' head.
  virtual std::optional<LeadingMaps> leading_maps(const HeadShape& /*shape*/,
                                                  const KernelParameters& /*parameters*/) const {
    return std::nullopt;
  }

  // Computes the output by the planned path, in the kernel's stated complexity. Differentiable in q, k, v and
  // parameters when gradients are enabled. Parameters lie where q lies: nothing is copied between devices.
  // Throws UsageError with the plan's reason if unsupported, and for parameters on another device.
  AttentionOutput run(const AttentionInput& input, const KernelParameters& parameters) const;

  // The kernel's operation between its output and W_o: out (B,H,N,d) → (B,H,N,d), rows of masked queries 0.
  // The LayerNorm of Hydra's `-ln` variants; the identity for all others.
  virtual at::Tensor finish(const at::Tensor& out, const at::Tensor& mask,
                            const KernelParameters& parameters) const;

  // Explicit weights (B,h,R,N) of the query rows `rows` (int64; undefined: all) in float32 (float64 where q
  // is float64); h is weight_heads(). Masked keys and masked queries have weight 0. For Hydra derived and
  // signed: Σ over the features of each original head of φ(Q)_f φ(K)_f. Differentiable like run().
  virtual at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                             const at::Tensor& rows = {}) const = 0;

  // Focus map contributions (Hydra paper Eq. 15–17): of token t to out_c·g_c, (B,N), summed over heads (and,
  // for `query` = nullopt, over all queries c). g: (B,H,d) for one query, (B,H,N,d) for all. They sum to
  // out_c·g_c. No gradients flow. The default computes (w_ct v_t)·g from the weights, in tiles of rows.
  virtual at::Tensor contributions(const AttentionInput& input, const KernelParameters& parameters,
                                   std::optional<std::int64_t> query, const at::Tensor& g) const;

  // The largest absolute entry of weights × V − out in these rows. The default computes both; kernels whose
  // weights are derived (Hydra) check their rank-one matrices instead.
  virtual double weights_check(const AttentionInput& input, const KernelParameters& parameters,
                               const at::Tensor& rows) const;

  // nullopt for every kernel but Hydra's. `rows` as in weights(). Throws UsageError for causal attention,
  // where every query has a vector of its own.
  virtual std::optional<GlobalVector> global_vector(const AttentionInput& input,
                                                    const KernelParameters& parameters,
                                                    const at::Tensor& rows) const;

  virtual Cost cost(const AttentionShape& shape) const = 0;

  // Whether sequences of such tokens can be decoded by state; `causal` is taken for true.
  Support decodes(const AttentionShape& shape) const;
  // The state of shape.batch sequences before their first token. Of `shape` the heads, widths, type and
  // device count; `tokens`, if more than 1, is the length to be expected. `saved`: tensors() of a state made
  // for the same shape and parameters, which the new one continues bit for bit. The kernel has to outlive the
  // state. Throws UsageError with the reason of decodes(), and for other tensors.
  std::unique_ptr<DecodingState> decoding(const AttentionShape& shape, const KernelParameters& parameters,
                                          const DecodingTensors& saved = {}) const;

protected:
  explicit Kernel(KernelSpec spec) : spec_(std::move(spec)) {}
  // Computes the output of a checked and supported input by the path of plan(shape_of(input, parameters)).
  virtual AttentionOutput compute(Path path, const AttentionInput& input,
                                  const KernelParameters& parameters) const = 0;
  // Checks the input's shapes. Throws UsageError, with the plan's reason if the input is not supported.
  void require_support(const AttentionInput& input) const;

  // Why a sequence whose length is not known beforehand cannot be decoded; empty if it can be.
  virtual std::string growth_refusal(const AttentionShape& shape) const;
  // A new state; called where growth_refusal() is empty.
  virtual std::unique_ptr<DecodingState> make_decoding(const AttentionShape& shape,
                                                       const KernelParameters& parameters) const;

private:
  KernelSpec spec_;
};

// φ of query rows and key tokens. weights() sums their products over the features.
struct Features {
  at::Tensor query; // (B,h,R,d′); Hydra (B,1,R,D). Rows of masked queries are 0
  at::Tensor key;   // (B,h,T,d′); Hydra (B,1,T,D). Masked keys are 0
  // Exponential maps: each feature of the keys is divided by its largest value over the real keys, that of
  // the queries multiplied by the same, and each query row divided by its largest entry. Products are then
  // right up to one factor per query row.
  bool rescaled = false;
};

// The second interface of kernels with a feature map.
class FeatureKernel {
public:
  virtual ~FeatureKernel() = default;

  // false: there is no feature map after all (another kernel's, that has none).
  virtual bool has_features() const { return true; }

  // φ of these query rows and key tokens (int64 tensors, undefined: all) in float32 (float64 where q is). For
  // normalised kernels a weight is their product divided by the row's sum of products. Not differentiable.
  // Throws UsageError with the plan's reason if unsupported.
  virtual Features features(const AttentionInput& input, const KernelParameters& parameters,
                            const at::Tensor& query_rows, const at::Tensor& key_rows) const = 0;

protected:
  FeatureKernel() = default;
  FeatureKernel(const FeatureKernel&) = default;
  FeatureKernel& operator=(const FeatureKernel&) = default;
};

// The features of any kernel; nullopt if it has no feature map (the softmax family).
std::optional<Features> features_of(const Kernel& kernel, const AttentionInput& input,
                                    const KernelParameters& parameters, const at::Tensor& query_rows,
                                    const at::Tensor& key_rows);

struct RegistryEntry {
  KernelInfo info;
  std::vector<std::string> aliases = {};
  // Throws UsageError for an invalid parameter value.
  std::function<std::unique_ptr<Kernel>(const KernelSpec&)> make = {};
  // For kernels whose facts depend on their parameters; else they are `info`.
  std::function<KernelInfo(const KernelSpec&)> info_of = {};
  // What a spec means as it was written: names of files are replaced by what they hold. A value without a key
  // is that of the only parameter.
  std::function<KernelSpec(const KernelSpec&)> resolve = {};
};

// All kernels in their fixed order.
const std::vector<RegistryEntry>& registry();

// The entry of this name or alias; null if there is none.
const RegistryEntry* find_entry(std::string_view name);

// The kernel of a spec. Throws UsageError (unknown name or parameter, invalid value).
std::unique_ptr<Kernel> make_kernel(const KernelSpec& spec);

} // namespace hydrascope
