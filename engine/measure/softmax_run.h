// The run that everything teacher-forced is measured on: softmax in every layer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "engine/models/transformer/model.h"

namespace hydrascope {

using LayerVisitor = std::function<void(int layer, const AttentionInput& input)>;

// Runs the model with softmax in every layer and shows each layer's q, k, v and input, one layer after
// another, without gradients. Throws Cancelled when `stop` is requested (polled before each block), and as
// check_finite.
void visit_softmax_run(const std::shared_ptr<const Model>& model, const ModelInput& input,
                       const LayerVisitor& visit, const std::stop_token& stop = {});

// q, k, v and layer inputs of consecutive texts (B = 1 each), cut into pieces of one length.
class PieceBuffer {
public:
  // `skipped`: tokens at the beginning that belong to no piece.
  PieceBuffer(int layers, std::int64_t length, std::int64_t skipped = 0);

  void add(int layer, const AttentionInput& input);
  // Whether every layer holds a whole piece.
  bool full() const { return tokens_.back() >= length_; }
  // The next piece of a layer, (1,H,length,d); what is left over begins the one after it.
  AttentionInput take(int layer);

private:
  std::int64_t length_;
  std::vector<std::vector<AttentionInput>> parts_; // by layer
  std::vector<std::int64_t> tokens_;               // by layer
  std::vector<std::int64_t> skip_;                 // by layer: still to be left out
};

} // namespace hydrascope
