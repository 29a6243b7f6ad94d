// The sequences of associative recall, and the decoder that learns them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/run/pass.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/tasks/recall.h"

namespace hydrascope::training {

// ---- Sequences, each a function of the seed, its part and its index ----

enum class RecallPart { training, validation, test };

struct RecallSequence {
  std::vector<std::int64_t> tokens; // N: pairs of key and value; the last pair's key has occurred before
  // Positions of the values whose key has occurred before, ascending; the last is N − 1.
  std::vector<std::int64_t> recalled;
};

RecallSequence recall_sequence(const RecallTask& task, std::uint64_t seed, RecallPart part,
                               std::int64_t index);

// ---- The decoder ----

// A model of engine/models/transformer/decoder.cpp with trainable parameters.
class RecallModel {
public:
  // Initial values as LibTorch's modules have them, from the seed, the same on every device. Throws
  // UsageError for a kernel that does not take the sequences.
  RecallModel(const RecallRequest& request, std::uint64_t seed, at::Device device = at::kCPU);

  const NamedTensors& leaves() const { return leaves_; }
  const LayerKernel& kernel(int layer) const { return pass_.layers.at(static_cast<std::size_t>(layer)); }

  // Token ids (B,N) → logits (P,vocabulary) at `positions` (P) int64, counted over the batch's B·N tokens;
  // both on the model's device.
  // `visit` gets each layer's attention, if gradients are disabled.
  at::Tensor logits(const at::Tensor& tokens, const at::Tensor& positions,
                    const TapVisitor& visit = {}) const;

private:
  NamedTensors leaves_; // the model's parameters without `encoder.`, and `layer.N.kernel.…`
  Pass pass_;
};

} // namespace hydrascope::training
