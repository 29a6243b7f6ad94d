// The gradients of one training step: of this process's items, summed over the processes. Where products are
// in float16 they are those of the loss times a power of two, because that type holds no number below 6e-8
// (loss scaling; Micikevicius et al. 2018, section 3.2).
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "engine/training/loop/loop.h"

namespace hydrascope::training {

// What the host knows of a step.
struct StepNumbers {
  std::vector<double> shown; // what TrainingTask::loss returns, of the whole batch; may be not finite
  std::vector<double> norms; // of each gradient
};

class StepGradients {
public:
  // `group`: null with one process. A stop that is requested in the first process is one in all of them.
  StepGradients(TrainingTask& task, Optimizer& optimizer, ProcessGroup* group, std::stop_token stop);

  // Leaves the gradients of a step's whole batch in the leaves. Waits for the device once, with several
  // processes twice and for the gradients that they exchange. Halves the scale as often as scaled gradients
  // overflow, and doubles it after many steps in which they do not. Tries once more with an empty cache where
  // the device's memory runs out.
  StepNumbers compute(std::int64_t step, LossScale& scale);

  // Whether the processes have agreed to stop after the last step.
  bool agreed_to_stop() const { return agreed_to_stop_; }

private:
  StepNumbers scaled(std::int64_t step, double scale);
  at::Tensor within_memory(std::int64_t step, double scale);
  void combine(std::vector<double>& shown);

  TrainingTask& task_;
  Optimizer& optimizer_;
  ProcessGroup* group_;
  std::stop_token stop_;
  bool agreed_to_stop_ = false;
};

} // namespace hydrascope::training
