// The loss that distils a kernel's maps: the cross-entropy of its weights under softmax's, row by row (Zhang
// et al. 2024, "The Hedgehog & the Porcupine", equation 4).
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"

namespace hydrascope::training {

// Of the attention of one layer; summed over real rows and batch.
struct DistillationLoss {
  at::Tensor cross_entropy; // (H), nats
  at::Tensor entropy;       // (H), nats, of softmax's weights: the difference is KL(softmax ‖ kernel)
};

// Of the layer's q, k and v in `input`; `softmax` and `kernel` give weights. Where `all_rows` > 0, adds the
// gradients of the loss divided by it to those of `parameters`, which are leaves. On the CPU the parts of a
// batch, and of causal rows, are computed at the same time, each by one thread: no operation of a part is
// long enough for several.
DistillationLoss distillation_loss(const AttentionInput& input, const Kernel& softmax, const Kernel& kernel,
                                   const KernelParameters& parameters, double all_rows);

} // namespace hydrascope::training
