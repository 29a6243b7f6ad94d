// Linear layers: weights packed once for oneDNN or joined once for one product, and projections with a
// kernel's leading maps folded in.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"
#include "engine/models/transformer/config.h"

namespace hydrascope {

class RowWeights;

// One projection, or several of the same input as one product. On the CPU the weights are packed for oneDNN
// at the first product of several rows, which makes it about twice as fast as at::linear; a single row reads
// RowWeights. Elsewhere those of several projections are joined. With gradients every projection runs
// by itself. Safe to call from several threads.
class Linear {
public:
  struct Part {
    at::Tensor weight; // (out,in)
    at::Tensor bias;   // (out) or undefined
  };
  Linear() = default;
  explicit Linear(std::vector<Part> parts) : parts_(std::move(parts)) {}
  Linear(const Linear&) = delete;
  Linear& operator=(const Linear&) = delete;

  bool defined() const { return !parts_.empty(); }
  const std::vector<Part>& parts() const { return parts_; }
  // (…,in) → (…,out), followed by the activation. For one part only.
  at::Tensor operator()(const at::Tensor& x, Activation activation = Activation::identity) const;
  // (…,in) → (…,out) of every part, in order.
  std::vector<at::Tensor> split(const at::Tensor& x) const;

  // Whether multiply_row() may be called: contiguous weights of this type, float32 or bfloat16, on the CPU
  // that need no gradient.
  bool multiplies_rows_of(at::ScalarType type) const;
  // out (Σ out) = W x + b of a single row x (in), in float32, as RowWeights, which the first call makes.
  void multiply_row(const float* x, float* out) const;
  std::int64_t outputs() const; // Σ out

private:
  struct Joined {
    at::Tensor weight, bias; // (Σ out,in) and (Σ out); no bias where no part has one
  };
  bool needs_gradient() const;
  bool constant(const at::Tensor& x) const;
  bool packable(const at::Tensor& x) const;
  bool is_row(const at::Tensor& x) const;
  Joined joined() const;
  at::Tensor run_packed(const at::Tensor& x, bool with_gelu) const;
  at::Tensor run_joined(const at::Tensor& x) const;
  at::Tensor run_row(const at::Tensor& x) const;

  std::vector<Part> parts_;
  mutable std::once_flag once_, rows_once_;
  mutable Joined stored_; // packed on the CPU
  mutable std::shared_ptr<const RowWeights> rows_;
};

at::Tensor activate(const at::Tensor& x, Activation activation);

// The q, k, v projections of a block with a kernel's leading maps folded in: y = x·(W_q·W) + (b_q·W + b), so
// that the map of a trained linear kernel costs nothing beside the projection.
struct FoldedProjection {
  FoldedProjection(std::vector<Linear::Part> parts, KernelParameters others)
      : projections(std::move(parts)), parameters(std::move(others)) {}

  Linear projections;
  KernelParameters parameters; // the kernel's other parameters
};

// Caches the folded projections of the last kernel. Safe to call from several threads.
class FoldedProjections {
public:
  // `qkv`: the projections of q, k and v, of `heads` heads. Null if the kernel has no leading maps, or at the
  // first call with these parameters: folding pays from the second run on, and in training the parameters
  // change with every step.
  std::shared_ptr<const FoldedProjection> of(const Linear& qkv, const Kernel& kernel,
                                             const KernelParameters& parameters, std::int64_t heads) const;

private:
  mutable std::mutex mutex_;
  mutable std::vector<at::Tensor> last_maps_; // of the last call
  mutable std::vector<std::uint32_t> versions_;
  mutable std::shared_ptr<const FoldedProjection> folded_; // of last_maps_, or null
};

} // namespace hydrascope
