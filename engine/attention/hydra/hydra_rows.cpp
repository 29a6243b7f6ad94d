#include "engine/attention/hydra/hydra_rows.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/full.h>
#include <ATen/ops/softmax.h>

#include "engine/attention/hydra/token_softmax.h"
#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

void add_causal_softmax(HydraRows& rows) {
  const at::Tensor absent = rows.mask.defined() ? rows.mask.logical_not().unsqueeze(-1) : at::Tensor();
  const at::Tensor key = absent.defined() ? rows.key.masked_fill(absent, -INFINITY) : rows.key;
  if (const at::Tensor scale = common_scale(key); scale.defined()) {
    // A masked key is 0 before exp: infinity would become NaN in the gradient.
    rows.key = select_rows(select_rows(rows.key - scale, rows.mask).exp(), rows.mask);
    const at::Tensor totals = at::cumsum(rows.key, 1);
    rows.query = rows.query / totals.masked_fill(totals == 0, 1);
    return;
  }
  const CausalTokenSums sums = causal_token_sums(key, rows.value);
  rows.key = key;
  rows.sums = sums.mean();
  rows.log_totals =
      sums.largest.masked_fill(sums.total == 0, 0) + sums.total.masked_fill(sums.total == 0, 1).log();
}

} // namespace

at::Tensor HydraRows::keys_of(const std::int64_t query_row) const {
  const at::Tensor earlier = key.slice(1, 0, query_row + 1);
  if (!log_totals.defined()) return earlier;
  return (earlier - log_totals.slice(1, query_row, query_row + 1)).exp();
}

at::Tensor HydraRows::keys_of(const at::Tensor& queries) const {
  const at::Tensor tokens = at::arange(key.size(1), queries.options());
  const at::Tensor later = (tokens > queries.unsqueeze(1)).unsqueeze(-1); // (R,N,1)
  const at::Tensor exponents = key.unsqueeze(1) - log_totals.index_select(1, queries).unsqueeze(2);
  return exponents.masked_fill(later, -INFINITY).exp();
}

at::Tensor mapped_rows(const RowMap& map, const at::Tensor& x, const at::Tensor& mask,
                       const at::Tensor& scale) {
  at::Tensor rows = map.of(select_rows(x, mask));
  if (scale.defined()) rows = rows * scale;
  return select_rows(rows, mask);
}

at::Tensor root_of_mean(const at::Tensor& mask, const std::int64_t tokens, const at::TensorOptions& options) {
  if (!mask.defined()) return at::full({1, 1, 1}, static_cast<double>(tokens), options).rsqrt();
  return mask.sum(1, true).clamp_min(1).to(options).rsqrt().unsqueeze(-1);
}

at::Tensor running_mean(const at::Tensor& mask, const std::int64_t tokens, const at::TensorOptions& options,
                        const std::int64_t before) {
  if (!mask.defined())
    return at::arange(before + 1, before + tokens + 1, options).reciprocal().view({1, -1, 1});
  return (at::cumsum(mask, 1, at::kLong) + before).clamp_min(1).to(options).reciprocal().unsqueeze(-1);
}

HydraRows hydra_rows(const HydraMaps& maps, const AttentionInput& input) {
  const at::Tensor mask = real_mask(input);
  const at::ScalarType type = compute_type(input.q.scalar_type());
  const auto to_type = [&](const at::Tensor& x) { return to_rows(x).to(type); };
  HydraRows rows;
  rows.mask = mask;
  rows.value = select_rows(to_type(input.v), mask);
  at::Tensor of_queries, of_keys;
  if (maps.over_tokens == OverTokens::mean) {
    const std::int64_t tokens = rows.value.size(1);
    if (input.causal) // T_i is the query's: both factors 1/√T_i are on its side
      of_queries = running_mean(mask, tokens, rows.value.options());
    else
      of_queries = of_keys = root_of_mean(mask, tokens, rows.value.options());
  }
  const at::Tensor source = maps.query_is_layer_input ? input.layer_input.to(type) : to_type(input.q);
  rows.query = mapped_rows(maps.query, source, mask, of_queries);
  rows.key = mapped_rows(maps.key, to_type(input.k), mask, of_keys);
  if (maps.over_tokens != OverTokens::softmax) return rows;
  if (input.causal) {
    add_causal_softmax(rows);
    return rows;
  }
  at::Tensor key = rows.key;
  if (mask.defined()) { // a sequence without a real token gives any finite numbers, cleared below
    const at::Tensor absent = mask.logical_not().logical_and(mask.any(1, true));
    key = key.masked_fill(absent.unsqueeze(-1), -INFINITY);
  }
  rows.key = select_rows(at::softmax(key, 1), mask);
  return rows;
}

} // namespace hydrascope
