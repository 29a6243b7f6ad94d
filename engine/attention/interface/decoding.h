// Decoding by state: what a kernel keeps of the tokens so far while sequences grow token by token. The
// softmax family keeps keys and values; linear attention Σ_j φ(k_j) v_jᵀ and Σ_j φ(k_j) of each key/value
// head (Katharopoulos et al. 2020, Eq. 16–20); Hydra one vector of D numbers.
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// Made by Kernel::decoding(). Of one thread at a time.
class DecodingState {
public:
  virtual ~DecodingState() = default;
  DecodingState& operator=(const DecodingState&) = delete;

  // Adds the next R ≥ 1 tokens of every sequence and returns their outputs (B,H,R,d), before
  // Kernel::finish(): the last R rows of what Kernel::run() returns for all tokens so far. q (B,H,R,d); k and
  // v the same or, of grouped heads, the key/value heads alone (B,key_heads,R,d); layer_input (B,R,D) where
  // the kernel needs it. All tokens are real. Without gradients. Throws UsageError for another shape, for q,
  // k or v of another type or kind of device, for a mask, and beyond a longest sequence (cosformer's m).
  at::Tensor extend(const AttentionInput& next);

  std::int64_t tokens() const { return tokens_; }
  // The memory of what is kept: constant for kernels with a state of sums, proportional to tokens() for a
  // cache of keys and values, without the room that it keeps free to grow.
  virtual std::int64_t bytes() const = 0;
  // All that is kept, to continue from (Kernel::decoding).
  DecodingTensors tensors() const;
  // An independent copy.
  virtual std::unique_ptr<DecodingState> clone() const = 0;

protected:
  explicit DecodingState(const AttentionShape& shape) : shape_(shape) {}
  DecodingState(const DecodingState&) = default;

  const AttentionShape& shape() const { return shape_; }
  std::int64_t key_heads() const { return heads_of(shape_).of_keys(); }

  // extend() of checked tokens; k and v are (B,key_heads,R,d). tokens() does not yet count them.
  virtual at::Tensor outputs(const AttentionInput& next) = 0;
  // What outputs() changes, by name; restore() takes the same back and throws UsageError for other tensors.
  virtual DecodingTensors kept() const = 0;
  virtual void restore(const DecodingTensors& saved) = 0;

private:
  friend class Kernel;

  AttentionShape shape_;
  std::int64_t tokens_ = 0;
};

// The tensor of a name, checked against what a state expects; for DecodingState::restore(). Throws
// UsageError.
at::Tensor saved_tensor(const DecodingTensors& saved, const std::string& name, at::IntArrayRef sizes,
                        const at::TensorOptions& options);

} // namespace hydrascope
