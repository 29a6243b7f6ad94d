#include "engine/attention/hydra/token_softmax.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>

#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

// Subtracting −∞, where there is no token yet, would give NaN.
at::Tensor finite_scale(const at::Tensor& scale) { return scale.masked_fill(at::isinf(scale), 0); }

} // namespace

void TokenSoftmaxSum::add(const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask) {
  const at::Tensor absent = mask.defined() ? mask.logical_not().unsqueeze(-1) : at::Tensor();
  at::Tensor largest = (absent.defined() ? key.masked_fill(absent, -INFINITY) : key).amax(1, true);
  if (largest_.defined()) largest = at::maximum(largest, largest_);
  const at::Tensor reference = finite_scale(largest);
  const at::Tensor share = select_rows((key - reference).exp(), mask);
  const at::Tensor shrunk = largest_.defined() ? (largest_ - reference).exp() : at::Tensor();
  const auto gather = [&](at::Tensor& sum, const at::Tensor& part) {
    sum = sum.defined() ? sum * shrunk + part : part;
  };
  gather(weighted_, (share * value).sum(1, true));
  gather(total_, share.sum(1, true));
  largest_ = largest;
}

at::Tensor TokenSoftmaxSum::result() const { return weighted_ / total_.masked_fill(total_ == 0, 1); }

at::Tensor CausalTokenSums::mean() const { return weighted / total.masked_fill(total == 0, 1); }

CausalTokenSums CausalTokenSums::last() const {
  return {largest.slice(1, -1), total.slice(1, -1), weighted.slice(1, -1)};
}

CausalTokenSums causal_token_sums(const at::Tensor& key, const at::Tensor& value,
                                  const CausalTokenSums& before) {
  constexpr std::int64_t chunk = 16; // within it every exponential by itself
  CausalTokenSums state = before;
  std::vector<at::Tensor> largest, total, weighted;
  for (std::int64_t first = 0; first < key.size(1); first += chunk) {
    const std::int64_t last = std::min(key.size(1), first + chunk);
    const at::Tensor k = key.slice(1, first, last), v = value.slice(1, first, last);
    at::Tensor top = std::get<0>(at::cummax(k.detach(), 1));
    if (state.largest.defined()) top = at::maximum(top, state.largest);
    const at::Tensor reference = finite_scale(top);
    const at::Tensor tokens = at::arange(last - first, k.options());
    const at::Tensor later = (tokens > tokens.unsqueeze(1)).unsqueeze(-1); // (C,C,1)
    const at::Tensor shares =
        (k.unsqueeze(1) - reference.unsqueeze(2)).masked_fill(later, -INFINITY).exp(); // (B,C,C,D)
    at::Tensor all = shares.sum(2), sum = (shares * v.unsqueeze(1)).sum(2);
    if (state.largest.defined()) {
      const at::Tensor shrunk = (state.largest - reference).exp();
      all = all + state.total * shrunk;
      sum = sum + state.weighted * shrunk;
    }
    largest.push_back(top);
    total.push_back(all);
    weighted.push_back(sum);
    state = CausalTokenSums{top, all, sum}.last();
  }
  return {at::cat(largest, 1), at::cat(total, 1), at::cat(weighted, 1)};
}

at::Tensor common_scale(const at::Tensor& key) {
  constexpr double safe_exponent = 40; // as of linear attention's features (feature_sums.cpp)
  const at::Tensor running = std::get<0>(at::cummax(key.detach(), 1));
  const at::Tensor overall = finite_scale(running.slice(1, -1));
  const at::Tensor growth = at::where(at::isinf(running), at::Scalar(0), overall - running);
  return growth.amax().item<double>() > safe_exponent ? at::Tensor() : overall;
}

} // namespace hydrascope
