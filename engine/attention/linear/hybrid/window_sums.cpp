#include "engine/attention/linear/hybrid/window_sums.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace hydrascope {
namespace {

constexpr std::int64_t queries_of_chunk = 64;

// e^(own − common), 0 for a part without any key.
at::Tensor share(const at::Tensor& own, const at::Tensor& common) {
  return (own - common.masked_fill(at::isinf(common), 0)).exp();
}

// The sums of chunks by LibTorch's fused attention, whose quotient is a numerator relative to the logarithm
// of the denominator: q (B,H,C,R,d), k and v (B,H,C,K,d), bias (B or 1,1,C,R,K). of_rows: the chunks' rows as
// tokens.
template <typename OfRows>
WindowSums flash_sums(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias,
                      const OfRows& of_rows) {
  const auto merged = [](const at::Tensor& x) { return x.flatten(0, 1); };
  const at::Tensor own =
      bias.size(0) == 1 ? bias.squeeze(0) : bias.expand({-1, q.size(1), -1, -1, -1}).flatten(0, 1);
  const auto [out, logarithm] =
      at::_scaled_dot_product_flash_attention_for_cpu(merged(q), merged(k), merged(v), 0.0, false, own);
  const auto rows = [&](const at::Tensor& x) { return of_rows(x.unflatten(0, {q.size(0), q.size(1)})); };
  const at::Tensor reference = rows(logarithm.unsqueeze(-1));
  return {rows(out), at::ones_like(reference), reference};
}

} // namespace

Windows windows_of(const std::int64_t tokens, const std::int64_t window, const bool causal,
                   const at::Tensor& lengths) {
  const at::Tensor place = at::arange(tokens, lengths.options()).unsqueeze(0);
  if (causal) return {(place - (window - 1)).clamp_min(0), place + 1};
  const at::Tensor width = lengths.clamp_max(window);
  const at::Tensor first = at::minimum((place - window / 2).clamp_min(0), lengths - width);
  return {first, first + width};
}

WindowSums softmax_sums(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Windows& windows,
                        const std::int64_t window, const bool causal) {
  const std::int64_t rows = q.size(2), key_heads = k.size(1), group = q.size(1) / key_heads,
                     earlier = k.size(2) - rows, reach = std::min(window, k.size(2)) - 1;
  const std::int64_t chunks = (rows + queries_of_chunk - 1) / queries_of_chunk;
  const std::int64_t size = chunks == 1 ? rows : queries_of_chunk;
  const std::int64_t after = causal ? 0 : reach, columns = reach + size + after;
  // Keys from `reach` tokens before each chunk to `after` ones behind it, as overlapping views.
  const std::int64_t missing = chunks * size - rows;
  const auto around = [&](const at::Tensor& x) { // (B,H_k,chunks,d,columns)
    return at::constant_pad_nd(x, {0, 0, reach - earlier, missing + after})
        .contiguous()
        .unfold(2, columns, size);
  };
  const auto of_rows = [&](const at::Tensor& x) { // (B,H_k,chunks,group,size,w) → (B,H,N,w)
    return x.transpose(2, 3).flatten(3, 4).flatten(1, 2).slice(2, 0, rows);
  };
  // The queries of the heads that share a key/value head are rows of one product:
  // (B,H_k,chunks,group·size,d).
  const at::Tensor queries = at::constant_pad_nd(q, {0, 0, 0, missing})
                                 .unflatten(2, {chunks, size})
                                 .unflatten(1, {key_heads, group})
                                 .transpose(2, 3)
                                 .flatten(3, 4);

  // Which of a chunk's columns are in its rows' windows: (B or 1,1,chunks,1,size,columns).
  const auto chunked = [&](const at::Tensor& x) {
    return at::constant_pad_nd(x.slice(1, earlier), {0, missing}).unflatten(1, {chunks, size}).unsqueeze(-1);
  };
  const at::Tensor first_of_chunk = at::arange(chunks, windows.first.options()) * size + (earlier - reach);
  const at::Tensor keys =
      (first_of_chunk.unsqueeze(1) + at::arange(columns, windows.first.options())).unsqueeze(1);
  const at::Tensor near =
      (keys >= chunked(windows.first)).logical_and(keys < chunked(windows.last)).unsqueeze(1).unsqueeze(3);
  if (q.is_cpu() && !at::GradMode::is_enabled()) {
    const at::Tensor bias = at::zeros(near.sizes(), q.options())
                                .masked_fill_(near.logical_not(), -INFINITY)
                                .expand({-1, -1, -1, group, -1, -1})
                                .flatten(3, 4); // (B or 1,1,chunks,group·size,columns)
    return flash_sums(queries, around(k).transpose(-1, -2), around(v).transpose(-1, -2), bias,
                      [&](const at::Tensor& x) {
                        return of_rows(x.unflatten(3, {group, size}));
                      });
  }
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor scores = at::matmul(queries * scale, around(k)).unflatten(3, {group, size});
  const at::Tensor masked = scores.masked_fill(near.logical_not(), -INFINITY);
  const at::Tensor largest = masked.detach().amax(-1, true);
  const at::Tensor shares = (masked - largest.masked_fill(at::isinf(largest), 0)).exp();
  const at::Tensor weighted =
      at::matmul(shares.flatten(3, 4), around(v).transpose(-1, -2)).unflatten(3, {group, size});
  return {of_rows(weighted), of_rows(shares.sum(-1, true)), of_rows(largest)};
}

WindowSums added(const WindowSums& one, const WindowSums& other) {
  const at::Tensor common = at::maximum(one.reference, other.reference);
  const at::Tensor left = share(one.reference, common), right = share(other.reference, common);
  return {one.numerator * left + other.numerator * right, one.denominator * left + other.denominator * right,
          common};
}

at::Tensor quotient_of(const WindowSums& sums) { return quotient(sums.numerator, sums.denominator); }

WindowSums window_sums(const CausalSums& sums) {
  if (sums.reference.defined()) return {sums.numerator, sums.denominator, sums.reference};
  const at::Tensor none = sums.denominator.detach() == 0;
  return {sums.numerator, sums.denominator, at::zeros_like(sums.denominator).masked_fill(none, -INFINITY)};
}

CausalProducts products_outside(const at::Tensor& log_query, const at::Tensor& log_key, const Windows& rows,
                                const at::Tensor& mask, const bool causal) {
  constexpr double safe_exponent = 40; // as of feature_sums.cpp
  const at::Tensor absent = mask.defined() ? mask.logical_not().unsqueeze(1).unsqueeze(-1) : at::Tensor();
  const at::Tensor real_key = absent.defined() ? log_key.masked_fill(absent, -INFINITY) : log_key;
  const at::Tensor keys = at::arange(log_key.size(2), rows.first.options());
  at::Tensor outside = keys < rows.first.unsqueeze(-1); // (B,R,N)
  if (!causal) outside = outside.logical_or(keys >= rows.last.unsqueeze(-1));
  outside = outside.unsqueeze(1);

  // The largest log-features of the keys before first_i and from last_i on, (B,H,R,f).
  const auto at_rows = [&](const at::Tensor& running, const at::Tensor& index) {
    const std::vector<std::int64_t> sizes{log_query.size(0), log_query.size(1), index.size(1),
                                          running.size(3)};
    return at::gather(running, 2, index.unsqueeze(1).unsqueeze(-1).expand(sizes));
  };
  const at::Tensor detached = real_key.detach();
  const auto running_of = [](const at::Tensor& x) { return std::get<0>(at::cummax(x, 2)); };
  at::Tensor reached =
      at_rows(at::constant_pad_nd(running_of(detached), {0, 0, 1, 0}, -INFINITY), rows.first);
  if (!causal)
    reached = at::maximum(
        reached, at_rows(at::constant_pad_nd(running_of(detached.flip(2)).flip(2), {0, 0, 0, 1}, -INFINITY),
                         rows.last));
  at::Tensor overall = detached.amax(2, true);
  overall = overall.masked_fill(at::isinf(overall), 0);
  const at::Tensor none = at::isinf(reached);
  const at::Tensor largest = (log_query.detach() + at::where(none, overall, reached)).amax(-1, true);
  const at::Tensor exponent = log_query + overall - largest;
  if (exponent.detach().amax().item<double>() <= safe_exponent) {
    const at::Tensor products = at::matmul(exponent.exp(), (real_key - overall).exp().transpose(2, 3));
    return {at::where(outside, products, at::Scalar(0)),
            largest.masked_fill(reached.amax(-1, true) == -INFINITY, -INFINITY)};
  }
  const std::int64_t step = std::max<std::int64_t>(1, (8 << 20) / log_key.numel());
  std::vector<at::Tensor> parts, references;
  for (std::int64_t at = 0; at < log_query.size(2); at += step) {
    const std::int64_t end = std::min(log_query.size(2), at + step);
    const at::Tensor exponents =
        (log_query.slice(2, at, end).unsqueeze(3) + real_key.unsqueeze(2))
            .masked_fill(outside.slice(2, at, end).unsqueeze(-1).logical_not(), -INFINITY);
    const at::Tensor top = exponents.detach().amax(at::IntArrayRef({3, 4}), true);
    parts.push_back((exponents - top.masked_fill(at::isinf(top), 0)).exp().sum(-1));
    references.push_back(top.squeeze(-1));
  }
  return {at::cat(parts, 2), at::cat(references, 2)};
}

} // namespace hydrascope
