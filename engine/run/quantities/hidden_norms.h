// The norm of every token's hidden state before each layer and after the last. A few tokens whose norm is
// many times the others' carry no information of their own place: Darcet et al. 2024, "Vision transformers
// need registers", section 2; Sun et al. 2024, "Massive activations in large language models". Plain header.
#pragma once

#include "engine/base/array.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct HiddenNormsKey {
  using Result =
      Array; // (L+1,N): ‖x‖₂ over the D features of what enters layer 0 … L−1 and of what the last gives

  bool operator==(const HiddenNormsKey&) const = default;
};
const Quantity& quantity_of(const HiddenNormsKey& key);

} // namespace hydrascope
