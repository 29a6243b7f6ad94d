#include "engine/run/next_token.h"

#include <algorithm>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/logsumexp.h>

namespace hydrascope {

NextTokenLoss next_token_loss(const Model& model, const at::Tensor& hidden, const at::Tensor& ids) {
  const at::NoGradGuard no_gradients;
  const std::int64_t last = hidden.size(1) - 1;
  std::vector<at::Tensor> losses, ranks;
  for (std::int64_t first = 0; first < last; first += next_token_piece) {
    const std::int64_t end = std::min(last, first + next_token_piece);
    const at::Tensor logits = model.logits(hidden.slice(1, first, end), {}).to(at::kFloat);
    const at::Tensor next = logits.gather(2, ids.slice(1, first + 1, end + 1).unsqueeze(2));
    losses.push_back(at::logsumexp(logits, {2}) - next.squeeze(2));
    ranks.push_back(logits.gt(next).sum({2}).to(at::kFloat));
  }
  return {at::cat(losses, 1), at::cat(ranks, 1)};
}

} // namespace hydrascope
