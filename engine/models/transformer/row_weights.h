// The weights of a linear layer for the products of single rows, as for each token that a decoder writes:
// their time is that of reading the weights once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hydrascope {

// The type in which rows are multiplied by weights: bfloat16 or float16 where that holds each number exactly,
// as of a checkpoint in that type, else the weights' own.
at::ScalarType row_type(const at::Tensor& weights);

// Immutable: safe to use from several threads.
class RowWeights {
public:
  // Of projections (out_i,in) of the same input, float32 or bfloat16, contiguous on the CPU. Copies them
  // where row_type() is another type. Layers with the same tensors, as of two models that differ in an
  // adapter, share one copy. The tensors must not change afterwards.
  static std::shared_ptr<const RowWeights> of(const std::vector<at::Tensor>& weights);

  // out (Σ out_i) = W x of a row x (in), both float32, summed in float32, by LibTorch's number of threads. In
  // lockstep with another thread (lockstep.h) that multiplies by the same weights each computes a part of
  // both products: the weights are read once, the results are the same.
  void multiply(const float* x, float* out) const;

private:
  explicit RowWeights(const std::vector<at::Tensor>& weights);
  // Rows [begin,end) of the products with `columns` inputs, 1 or 2.
  void multiply_rows(const float* const* x, float* const* out, int columns, std::int64_t begin,
                     std::int64_t end) const;

  std::vector<at::Tensor> weights_;
  std::int64_t inputs_ = 0, outputs_ = 0, row_bytes_ = 0;
};

} // namespace hydrascope
