// How well a decoder predicts each token of its text. Plain header.
#pragma once

#include "engine/base/array.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct TokenLoss {
  Array loss; // (1,N−1): −ln p of token i + 1 after the tokens 0 … i, nats
  Array rank; // (1,N−1): number of tokens that the model holds for likelier
};

// No result without a decoder. Memory: V numbers for each token of a piece of 128.
struct TokenLossKey {
  using Result = TokenLoss;
  bool operator==(const TokenLossKey&) const = default;
};
const Quantity& quantity_of(const TokenLossKey& key);

} // namespace hydrascope
