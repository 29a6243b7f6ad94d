// LibTorch's AdamW (the fused operation: one pass over each tensor instead of ten) over named parameters,
// with its state as tensors that can be saved and restored.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hydrascope::training {

using NamedTensors = std::map<std::string, at::Tensor>;

class Optimizer {
public:
  // `parameters`: contiguous leaves that require gradients. Weight decay applies to matrices, not to biases,
  // norms and scales.
  Optimizer(NamedTensors parameters, double weight_decay);

  const NamedTensors& parameters() const { return parameters_; }

  // The norm of each gradient, (G) float64 on the parameters' device: for the caller to read in one copy with
  // what else it reads, because reading waits for the device.
  at::Tensor gradient_norms() const;
  // Multiplies all gradients.
  void scale_gradients(double factor);
  void clear_gradients();

  // Updates the parameters from their gradients, of these norms, and clears those. The norm of all gradients
  // together is first clipped to `clip_norm` (0: not clipped). Returns the norm before clipping; if it is not
  // finite, nothing is updated. Never waits for the device.
  double step(double learning_rate, double clip_norm, std::span<const double> norms);

  // `first_moment.NAME` and `second_moment.NAME` of every parameter, empty before the first step.
  NamedTensors state() const;
  // Throws BrokenFile if a moment is missing or of another shape.
  void restore(const NamedTensors& state, std::int64_t steps, const std::string& subject);

private:
  struct Moments {
    at::Tensor first, second;
    at::Tensor steps; // () float32 on the parameter's device: its updates so far
  };
  std::vector<at::Tensor> gradients() const; // of the parameters that have one, in order
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
