// Flops by formula, per layer and kernel: multiply-accumulates, as the papers count them. Nothing is run.
// Plain types.
//
// The Hydra paper (Bolya et al. 2022) uses two conventions; both are given.
//   total   tables 2 and 3: patch embedding, blocks and head, LayerNorm at 5 an element, Hydra's element-wise
//           products at 0.
//   blocks  table 4: the blocks' matrix products, Hydra's products at 2·N·D a layer, norms not counted.
// Neither counts biases, activations, residual sums or the exponentials of softmax.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/measure/architecture.h"

namespace hydrascope {

// One block, in multiply-accumulates.
struct LayerFlops {
  KernelSpec kernel;
  double projections = 0;       // q, k, v and output: 4·N·D², 3·N·D² for a kernel without W_q (poly-nl)
  double attention = 0;         // the kernel's own, as Kernel::cost gives it
  double attention_counted = 0; // of these in `total`: 0 for Hydra's element-wise products
  double mlp = 0;               // 2·N·D·D′, 3·N·D·D′ where gated
  double norms = 0;             // the block's two and the kernel's own

  double total() const { return projections + attention_counted + mlp + norms; }
  double blocks() const { return projections + attention + mlp; }
};

struct Flops {
  std::int64_t tokens = 0; // N, prefix tokens included
  double embedding = 0;    // patches only: looking up words costs nothing
  double head = 0;
  double norms = 0; // outside the blocks
  std::vector<LayerFlops> layers;

  double total() const;
  double blocks() const;
  double attention_share() const; // of `blocks`, 0 … 1
};

// An image of this size, in pixels. Throws UsageError if it is not a whole number of patches, the schedule
// has another number of layers, or a kernel cannot run in the architecture, with the kernel's reason.
Flops flops_of_image(const Architecture& architecture, int height, int width, const Schedule& schedule);

// A text of this many tokens, whatever the length of the position table. Throws likewise.
Flops flops_of_text(const Architecture& architecture, std::int64_t tokens, const Schedule& schedule);

} // namespace hydrascope
