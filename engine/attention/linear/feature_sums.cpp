#include "engine/attention/linear/feature_sums.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>

namespace hydrascope {
namespace {

constexpr std::int64_t chunk_tokens = 64;

// v with a column of ones: its sums are numerator and denominator at once.
at::Tensor with_ones(const at::Tensor& v) {
  return at::cat({v, at::ones({v.size(0), v.size(1), v.size(2), 1}, v.options())}, -1);
}

CausalSums split_ones(const at::Tensor& sums) {
  const std::int64_t width = sums.size(3) - 1;
  return {sums.slice(3, 0, width), sums.slice(3, width), {}};
}

// ℓ of real keys, −∞ for masked keys.
at::Tensor masked_log(const at::Tensor& log_key, const at::Tensor& mask) {
  if (!mask.defined()) return log_key;
  return log_key.masked_fill(mask.logical_not().unsqueeze(1).unsqueeze(-1), -INFINITY);
}

// The scale, with 0 for −∞ (no key yet): subtracting −∞ would give NaN, and all its exponentials are 0
// anyway.
at::Tensor finite(const at::Tensor& scale) { return scale.masked_fill(at::isinf(scale), 0); }

// The largest value up to each token, of x (B,H,N,f). at::cummax also finds where it is, which takes much
// longer.
at::Tensor running_maximum(const at::Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) return std::get<0>(at::cummax(x, 2));
  const at::Tensor result = x.clone(at::MemoryFormat::Contiguous);
  const std::int64_t tokens = x.size(2), width = x.size(3);
  auto* const data = result.mutable_data_ptr<float>();
  at::parallel_for(0, x.size(0) * x.size(1), 1, [&](const std::int64_t begin, const std::int64_t end) {
    for (std::int64_t head = begin; head < end; ++head)
      for (std::int64_t token = 1; token < tokens; ++token) {
        float* const row = data + (head * tokens + token) * width;
        for (std::int64_t i = 0; i < width; ++i) row[i] = std::max(row[i], row[i - width]);
      }
  });
  return result;
}

// Features of all tokens with one scale per feature: exact unless early and late keys differ by orders of
// magnitude.
struct ScaledFeatures {
  at::Tensor query, key;
  at::Tensor scale;     // (B,H_k,1,f)
  at::Tensor reference; // (B,H,N,1): what each query row was divided by, −∞ without any key
};

// A row's reference, −∞ where `reached` (…,f), the largest log-features up to it, is that of no key.
at::Tensor reference_of(const at::Tensor& largest, const at::Tensor& reached) {
  return largest.masked_fill(reached.amax(-1, true) == -INFINITY, -INFINITY);
}

// The running maxima (B,H_k,N,f) up to the rows (R), −∞ for row −1.
at::Tensor up_to_rows(const at::Tensor& running, const at::Tensor& rows) {
  const at::Tensor own = running.index_select(2, rows.clamp_min(0));
  return own.masked_fill((rows < 0).unsqueeze(-1), -INFINITY);
}

// Scales each query row and each feature such that the largest product of a row is 1; nullopt if the features
// of early rows would overflow. `rows` (R): the tokens of the queries; undefined: all. `before` (B,H_k,1,f):
// the largest log-features of earlier keys; undefined: there are none.
std::optional<ScaledFeatures> scaled_by_all_keys(const at::Tensor& log_query, const at::Tensor& log_key,
                                                 const at::Tensor& rows = {}, const at::Tensor& before = {}) {
  // e⁴⁰ is far from overflow, and a key that underflows (below e⁻⁸⁷) is below e⁻⁴⁷ of its row.
  constexpr double safe_exponent = 40;
  at::Tensor running = running_maximum(log_key.detach());
  if (before.defined()) running = at::maximum(running, before);
  const at::Tensor overall = finite(running.slice(2, -1));
  const at::Tensor own = rows.defined() ? up_to_rows(running, rows) : running;
  const std::int64_t heads = log_query.size(1);
  const at::Tensor reached = for_each_head(at::where(at::isinf(own), overall, own), heads);
  const at::Tensor largest = (log_query.detach() + reached).amax(-1, true);
  const at::Tensor exponent = log_query + for_each_head(overall, heads) - largest;
  if (exponent.detach().amax().item<double>() > safe_exponent) return std::nullopt;
  return ScaledFeatures{exponent.exp(), (log_key - overall).exp(), overall,
                        reference_of(largest, for_each_head(own, heads))};
}

// Σ_f exp(ℓ_f(q_i) + ℓ_f(k_j) − r_i) over j ≤ i within a chunk: (B,H,C,C), r (B,H,C,1), every entry by
// itself. Later keys are masked before exp: they may be out of range, and a gradient of 0 times infinity is
// NaN.
at::Tensor exact_products(const at::Tensor& log_query, const at::Tensor& log_key,
                          const at::Tensor& reference) {
  const at::Tensor exponents = (log_query - reference).unsqueeze(3) + log_key.unsqueeze(2); // (B,H,C,C,f)
  const at::Tensor tokens = at::arange(log_query.size(2), exponents.options());
  const at::Tensor later = (tokens > tokens.unsqueeze(1)).unsqueeze(-1);
  return exponents.masked_fill(later, -INFINITY).exp().sum(-1);
}

// The largest log-feature of the real keys, (B,h,1,d′), −∞ where there is none. The scale cancels in the
// quotient, so no gradient flows through it.
at::Tensor largest_key(const at::Tensor& log_key, const at::Tensor& mask) {
  if (!mask.defined()) return log_key.detach().amax(2, true);
  const at::Tensor absent = mask.logical_not().unsqueeze(1).unsqueeze(-1);
  return log_key.detach().masked_fill(absent, -INFINITY).amax(2, true);
}

} // namespace

c10::impl::ExcludeDispatchKeyGuard without_float16_sums(const at::ScalarType tokens) {
  return {tokens == at::kHalf ? c10::autocast_dispatch_keyset : c10::DispatchKeySet()};
}

FeatureBlocks::FeatureBlocks(const AttentionInput& input, const KernelParameters& parameters,
                             const FeatureMap& map, std::int64_t heads, bool all_at_once)
    : input_(input),
      parameters_(parameters),
      map_(map),
      heads_(heads),
      key_heads_(key_heads_of(input, map, heads)),
      mask_(real_mask(input)),
      type_(compute_type(input.q.scalar_type())) {
  const std::int64_t tokens = input.q.size(2);
  const std::int64_t width = input.q.size(1) * input.q.size(3) / heads;
  if (all_at_once)
    blocks_ = {{0, tokens}};
  else
    blocks_ = token_blocks(tokens, input.q.size(0) * heads * map.width(width));
}

at::Tensor FeatureBlocks::mask(const TokenBlock& block) const {
  return mask_.defined() ? mask_.slice(1, block.first, block.last) : mask_;
}

at::Tensor FeatureBlocks::tokens(const at::Tensor& x, const TokenBlock& block) const {
  return resplit(select_tokens(x.slice(2, block.first, block.last).to(type_), mask(block)), heads_);
}

at::Tensor FeatureBlocks::of_key_heads(const at::Tensor& x, const TokenBlock& block) const {
  if (key_heads_ == heads_) return tokens(x, block);
  const at::Tensor own = one_of_each_group(x, key_heads_).slice(2, block.first, block.last);
  return select_tokens(own.to(type_), mask(block));
}

at::Tensor FeatureBlocks::query_tokens(const at::Tensor& rows) const {
  return resplit(select_tokens(take_tokens(input_.q, rows).to(type_), take_mask(mask_, rows)), heads_);
}

at::Tensor FeatureBlocks::query_rows(const at::Tensor& rows) const {
  return map_.features(query_tokens(rows), Side::query, context(rows));
}

at::Tensor FeatureBlocks::key_rows(const at::Tensor& rows) const {
  const at::Tensor own = key_heads_ == heads_ ? input_.k : one_of_each_group(input_.k, key_heads_);
  const at::Tensor key = select_tokens(take_tokens(own, rows).to(type_), take_mask(mask_, rows));
  const at::Tensor split = key_heads_ == heads_ ? resplit(key, heads_) : key;
  return for_each_head(map_.features(split, Side::key, context(rows)), heads_);
}

FeatureContext FeatureBlocks::context(const TokenBlock& block) const {
  at::Tensor rows;
  if (blocks_.size() > 1) rows = at::arange(block.first, block.last, input_.q.options().dtype(at::kLong));
  return context(rows);
}

FeatureContext FeatureBlocks::context(const at::Tensor& rows) const {
  return {.parameters = parameters_,
          .heads = heads_of(shape_of(input_)),
          .mask = mask_,
          .rows = rows,
          .tokens = input_.q.size(2),
          .device = input_.q.device()};
}

std::int64_t key_heads_of(const AttentionInput& input, const FeatureMap& map, const std::int64_t heads) {
  const bool grouped = input.key_heads != 0 && heads == input.q.size(1) && !map.mixes_heads();
  return grouped ? input.key_heads : heads;
}

at::Tensor scale_of_keys(const FeatureBlocks& tokens) {
  at::Tensor scale;
  for (const TokenBlock& block : tokens.all()) {
    const at::Tensor largest = largest_key(tokens.key(block), tokens.mask(block));
    scale = scale.defined() ? at::maximum(scale, largest) : largest;
  }
  return finite(scale);
}

// A masked key may exceed the largest real one: it is also zeroed before exp, so that no gradient is
// multiplied by infinity.
at::Tensor scaled_key(const at::Tensor& log_key, const at::Tensor& scale, const at::Tensor& mask) {
  return select_tokens(select_tokens(log_key - scale, mask).exp(), mask);
}

at::Tensor scaled_query(const at::Tensor& log_query, const at::Tensor& scale) {
  const at::Tensor exponent = log_query + scale;
  return (exponent - exponent.detach().amax(-1, true)).exp_();
}

at::Tensor quotient(const at::Tensor& numerator, const at::Tensor& denominator) {
  return numerator / denominator.masked_fill(denominator == 0, 1);
}

KeySums sums_over_keys(const FeatureBlocks& tokens, bool logarithmic) {
  KeySums sums;
  for (const TokenBlock& block : tokens.all()) {
    const at::Tensor mask = tokens.mask(block);
    at::Tensor key = tokens.key(block);
    if (logarithmic) {
      const at::Tensor largest = largest_key(key, mask);
      const at::Tensor scale = sums.scale.defined() ? at::maximum(sums.scale, largest) : largest;
      if (sums.scale.defined()) {
        const at::Tensor shrunk = (sums.scale - finite(scale)).exp_().transpose(2, 3);
        sums.values *= shrunk;
        sums.totals *= shrunk;
      }
      sums.scale = scale;
      key = scaled_key(key, finite(scale), mask);
    } else {
      key = select_tokens(key, mask);
    }
    const at::Tensor values = at::matmul(key.transpose(2, 3), tokens.value(block));
    const at::Tensor totals = key.sum(2).unsqueeze(-1);
    sums.values = sums.values.defined() ? sums.values + values : values;
    sums.totals = sums.totals.defined() ? sums.totals + totals : totals;
  }
  if (logarithmic) sums.scale = finite(sums.scale);
  return sums;
}

CausalSums causal_sums(const at::Tensor& query, const at::Tensor& key, const at::Tensor& v,
                       CausalState* const state) {
  const std::int64_t tokens = query.size(2), key_heads = key.size(1), group = query.size(1) / key_heads;
  const std::int64_t chunks = (tokens + chunk_tokens - 1) / chunk_tokens;
  const std::int64_t size = chunks == 1 ? tokens : chunk_tokens;
  const auto chunked = [&](const at::Tensor& x) {
    return at::constant_pad_nd(x, {0, 0, 0, chunks * size - tokens}).unflatten(2, {chunks, size});
  };
  // The queries of the heads that share a key/value head are rows of one product:
  // (B,H_k,chunks,group·size,f).
  const at::Tensor queries = chunked(query).unflatten(1, {key_heads, group}).transpose(2, 3).flatten(3, 4);
  const at::Tensor keys = chunked(key), values = chunked(with_ones(v));
  const at::Tensor products = at::matmul(queries, keys.transpose(-1, -2)).unflatten(3, {group, size}).tril();
  at::Tensor sums = at::matmul(products.flatten(3, 4), values);
  const bool continued = state != nullptr && state->sums.defined();
  if (chunks > 1 || state != nullptr) {
    const at::Tensor own = at::matmul(keys.transpose(-1, -2), values); // (B,H_k,chunks,f,d+1)
    at::Tensor before = at::cumsum(own.slice(2, 0, chunks - 1), 2);    // of the chunks from the second on
    if (continued) before = at::cat({state->sums.unsqueeze(2), before + state->sums.unsqueeze(2)}, 2);
    if (before.size(2) > 0) {
      const std::int64_t first = continued ? 0 : 1;
      const at::Tensor earlier = at::matmul(queries.slice(2, first), before);
      sums = continued ? sums + earlier : at::cat({sums.slice(2, 0, 1), sums.slice(2, 1) + earlier}, 2);
    }
    if (state != nullptr) {
      const at::Tensor last = own.select(2, chunks - 1);
      state->sums = before.size(2) > 0 ? before.select(2, before.size(2) - 1) + last : last;
    }
  }
  const at::Tensor unfolded = sums.unflatten(3, {group, size}).transpose(2, 3).flatten(3, 4).flatten(1, 2);
  return split_ones(unfolded.slice(2, 0, tokens));
}

CausalSums causal_sums_of_logarithms(const at::Tensor& log_query, const at::Tensor& log_key,
                                     const at::Tensor& v, const at::Tensor& mask, CausalState* const state) {
  const std::int64_t heads = log_query.size(1), tokens = log_query.size(2);
  const at::Tensor real_key = masked_log(log_key, mask);
  CausalState own;
  CausalState& kept = state != nullptr ? *state : own;
  // (The scale of no key at all is 0 and may be above the first one's: there the sums are 0 as well, and no
  // exponent may become infinite.)
  const auto rescale = [&](const at::Tensor& scale) {
    if (kept.sums.defined()) kept.sums = kept.sums * (kept.scale - scale).clamp_max(0).exp().transpose(2, 3);
    kept.scale = scale;
  };
  if (const auto scaled = scaled_by_all_keys(log_query, real_key, {}, kept.scale)) {
    if (state != nullptr) rescale(scaled->scale);
    CausalSums sums = causal_sums(scaled->query, scaled->key, v, state);
    sums.reference = scaled->reference;
    return sums;
  }

  // The range is wide: chunk by chunk, each scaled by the keys before it; within a chunk every product by
  // itself.
  constexpr std::int64_t chunk = 16;
  const at::Tensor values = with_ones(v);
  at::Tensor running = running_maximum(real_key.detach()); // −∞ before the first real key
  if (kept.scale.defined()) running = at::maximum(running, kept.scale);
  const at::Tensor reached = for_each_head(running, heads);
  const at::Tensor largest = finite((log_query.detach() + reached).amax(-1, true));
  std::vector<at::Tensor> parts;
  for (std::int64_t first = 0; first < tokens; first += chunk) {
    const std::int64_t last = std::min(tokens, first + chunk);
    const at::Tensor query = log_query.slice(2, first, last), key = real_key.slice(2, first, last);
    const at::Tensor value = values.slice(2, first, last), reference = largest.slice(2, first, last);
    at::Tensor part =
        at::matmul(exact_products(query, for_each_head(key, heads), reference), for_each_head(value, heads));
    if (kept.sums.defined()) {
      const at::Tensor shares = (query + for_each_head(kept.scale, heads) - reference).clamp_max(0).exp();
      part = part + at::matmul(shares, for_each_head(kept.sums, heads));
    }
    parts.push_back(part);
    const at::Tensor scale = finite(running.slice(2, last - 1, last));
    const at::Tensor gained = at::matmul((key - scale).exp().transpose(2, 3), value);
    rescale(scale);
    kept.sums = kept.sums.defined() ? kept.sums + gained : gained;
  }
  CausalSums sums = split_ones(at::cat(parts, 2));
  sums.reference = reference_of(largest, reached);
  return sums;
}

CausalProducts causal_products_of_logarithms(const at::Tensor& log_query, const at::Tensor& log_key,
                                             const at::Tensor& rows, const at::Tensor& mask) {
  const at::Tensor real_key = masked_log(log_key, mask);
  const std::int64_t tokens = log_key.size(2), queries = log_query.size(2);
  const at::Tensor keys = at::arange(tokens, rows.options());
  if (const auto scaled = scaled_by_all_keys(log_query, real_key, rows)) {
    const at::Tensor products = at::matmul(scaled->query, scaled->key.transpose(2, 3));
    return {at::where(keys <= rows.unsqueeze(1), products, at::Scalar(0)), scaled->reference};
  }
  const std::int64_t row_entries = log_key.numel();
  const std::int64_t step = std::max<std::int64_t>(1, (8 << 20) / row_entries);
  std::vector<at::Tensor> parts, references;
  for (std::int64_t first = 0; first < queries; first += step) {
    const std::int64_t last = std::min(queries, first + step);
    const at::Tensor later = (keys > rows.slice(0, first, last).unsqueeze(1)).unsqueeze(-1); // (R,N,1)
    const at::Tensor exponents =
        (log_query.slice(2, first, last).unsqueeze(3) + real_key.unsqueeze(2)).masked_fill(later, -INFINITY);
    const at::Tensor largest = exponents.detach().amax(at::IntArrayRef({3, 4}), true);
    parts.push_back((exponents - finite(largest)).exp().sum(-1));
    references.push_back(largest.squeeze(-1));
  }
  return {at::cat(parts, 2), at::cat(references, 2)};
}

} // namespace hydrascope
