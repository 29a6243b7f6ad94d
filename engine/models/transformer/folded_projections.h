// A block's q, k, v projections with a kernel's leading maps folded into them: y = x·(W_q·W) + (b_q·W + b),
// so that a trained linear kernel's map costs nothing beside the projection.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/attention/interface/kernel.h"
#include "engine/models/transformer/linear.h"

namespace hydrascope {

struct FoldedProjection {
  FoldedProjection(std::vector<Linear::Part> parts, KernelParameters others)
      : projections(std::move(parts)), parameters(std::move(others)) {}

  Linear projections;
  KernelParameters parameters; // what the kernel then takes
};

// Keeps the last kernel's. Safe to call from several threads.
class FoldedProjections {
public:
  // `qkv`: the projections of q, k and v, of `heads` heads. Null where nothing is to be folded: the kernel
  // has no leading maps, or these parameters are met for the first time (folding pays from the second run on,
  // and a training's parameters change with every step).
  std::shared_ptr<const FoldedProjection> of(const Linear& qkv, const Kernel& kernel,
                                             const KernelParameters& parameters, std::int64_t heads) const;

private:
  mutable std::mutex mutex_;
  mutable std::vector<at::Tensor> met_; // the maps of folded_, or those met last
  mutable std::vector<std::uint32_t> versions_;
  mutable std::shared_ptr<const FoldedProjection> folded_;
};

} // namespace hydrascope
