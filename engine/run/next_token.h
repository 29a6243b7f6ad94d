// The loss of next-token prediction, from a decoder's last hidden state.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "engine/models/transformer/model.h"

namespace hydrascope {

// Tokens whose logits are computed together: those of all tokens would be N·V numbers.
inline constexpr std::int64_t next_token_piece = 128;

struct NextTokenLoss {
  at::Tensor loss; // (B,N−1) float32: −ln p of token i + 1 after the tokens 0 … i, nats
  at::Tensor rank; // (B,N−1) float32: number of tokens with a larger logit
};

// hidden (B,N,D): the last block's output; ids (B,N) int64. Not differentiable.
NextTokenLoss next_token_loss(const Model& model, const at::Tensor& hidden, const at::Tensor& ids);

} // namespace hydrascope
