// LibTorch's AdamW (the fused operation: one pass over each tensor instead of ten) over named parameters,
// with its state as tensors that can be saved and restored.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

namespace hydrascope::training {

using NamedTensors = std::map<std::string, at::Tensor>;

class Optimizer {
public:
  // `parameters`: leaves that require gradients. Weight decay applies to matrices, not to biases, norms and
  // scales.
  Optimizer(NamedTensors parameters, double weight_decay);

  const NamedTensors& parameters() const { return parameters_; }

  // Updates the parameters from their gradients, and clears those. The norm of all gradients is first clipped
  // to `clip_norm` (0: not clipped). Returns the norm before clipping; if it is not finite, nothing is
  // updated.
  double step(double learning_rate, double clip_norm);

  // `first_moment.NAME` and `second_moment.NAME` of every parameter, empty before the first step.
  NamedTensors state() const;
  // Throws BrokenFile if a moment is missing or of another shape.
  void restore(const NamedTensors& state, std::int64_t steps, const std::string& subject);

private:
  struct Moments {
    at::Tensor first, second;
    at::Tensor steps; // () float32: updates of this parameter so far
  };
  // Updates the matrices, or the other parameters.
  void update(double learning_rate, bool matrices);

  NamedTensors parameters_;
  double weight_decay_;
  std::int64_t steps_ = 0;
  std::map<std::string, Moments> moments_;
};

// Linear warm-up over the first `warmup` steps, then a cosine to zero at `steps`.
double warmup_cosine(double peak, std::int64_t step, std::int64_t warmup, std::int64_t steps);

} // namespace hydrascope::training
