// The decoder that learns associative recall: a model of engine/models/transformer/decoder.cpp by its
// configuration, with parameters that are trained.
#pragma once

#include "engine/run/pass.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/tasks/recall.h"

namespace hydrascope::training {

class RecallModel {
public:
  // Starts as LibTorch's own modules do, from the seed. Throws UsageError for a kernel without a causal form.
  RecallModel(const RecallRequest& request, std::uint64_t seed);

  const NamedTensors& leaves() const { return leaves_; }
  const LayerKernel& kernel(int layer) const { return pass_.layers.at(static_cast<std::size_t>(layer)); }

  // Token ids (B,N) → logits (P,vocabulary) at `positions` (P) int64, counted over the batch's B·N tokens.
  // `visit`, with gradients disabled, sees each layer's attention.
  at::Tensor logits(const at::Tensor& tokens, const at::Tensor& positions,
                    const TapVisitor& visit = {}) const;

private:
  NamedTensors leaves_; // the model's parameters without `encoder.`, and `layer.N.kernel.…`
  Pass pass_;
};

} // namespace hydrascope::training
