// Which parameters a fine-tuning trains, as leaves of the gradient graph.
#pragma once

#include <vector>

#include "engine/training/class_plan.h"
#include "engine/training/prepared_model.h"

namespace hydrascope::training {

// The layers to train: the ones asked for, else those the schedule replaces, else the last four; ascending.
// Throws UsageError for a layer that the model does not have.
std::vector<int> layers_to_train(const std::vector<int>& asked, const Schedule& schedule);

// Copies in float32 that require gradients, by canonical name: everything in `layers`, trainable parameters
// of their kernels (kernel.LAYER.KERNEL.NAME), and with `head` the final LayerNorm and the classifier, which
// starts at zero where the plan makes a new one.
NamedTensors make_leaves(const PreparedModel& prepared, const std::vector<int>& layers, bool head,
                         const ClassPlan& plan);

// A model that runs with these parameters, and what its kernels take in each layer.
struct RunnableModel {
  std::shared_ptr<const Model> model;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<KernelParameters> kernel_parameters;

  // Blocks first … L−1 and the classifier: (B,C) float32.
  at::Tensor logits(at::Tensor hidden, const ModelInput& input, int first) const;
};
RunnableModel runnable(const PreparedModel& prepared, const NamedTensors& parameters, const ClassPlan& plan);

} // namespace hydrascope::training
