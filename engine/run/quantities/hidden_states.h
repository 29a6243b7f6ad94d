// The model's inputs, hidden states and outputs as tensors, and the norms of hidden states. Plain header.
#pragma once

#include <vector>

#include "engine/base/array.h"
#include "engine/run/quantity.h"

namespace hydrascope {

// The picture after pre-processing, (1,3,H,W); no result for text.
struct PixelsKey {
  using Result = Array;
  bool operator==(const PixelsKey&) const = default;
};
const Quantity& quantity_of(const PixelsKey& key);

// The input of the first layer and the output of each layer: 0…L, (1,N,D).
struct HiddenStatesKey {
  using Result = std::vector<Array>;
  bool operator==(const HiddenStatesKey&) const = default;
};
const Quantity& quantity_of(const HiddenStatesKey& key);

// The norm ‖x‖₂ over the D features of every token in the input of the first layer and the output of each
// layer: (L+1,N). The few tokens whose norm is many times that of the others hold no information about their
// own position: Darcet et al. 2024, "Vision transformers need registers", section 2; Sun et al. 2024,
// "Massive activations in large language models".
struct HiddenNormsKey {
  using Result = Array;
  bool operator==(const HiddenNormsKey&) const = default;
};
const Quantity& quantity_of(const HiddenNormsKey& key);

// A classifier's (1,C) or a masked-LM head's (1,N,V); no result without a head.
struct LogitsKey {
  using Result = Array;
  bool operator==(const LogitsKey&) const = default;
};
const Quantity& quantity_of(const LogitsKey& key);

} // namespace hydrascope
