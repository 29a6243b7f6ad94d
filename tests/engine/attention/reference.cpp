#include "tests/engine/attention/reference.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

namespace hydrascope::reference {
namespace {

// The real tokens in double precision, masked ones replaced by 0, with the mask always there.
struct Tokens {
  at::Tensor q, k, v, g, mask; // (B,H,N,d), mask (B,N)
  at::Tensor visible;          // (B,1,N,N): query c may look at token t
};

Tokens tokens_of(const AttentionInput& input, const at::Tensor& g) {
  const std::int64_t count = input.q.size(2);
  const at::Tensor mask = input.mask.defined()
                              ? input.mask.to(at::kBool)
                              : at::ones({input.q.size(0), count}, at::TensorOptions().dtype(at::kBool));
  const auto real = [&](const at::Tensor& x) {
    return at::where(mask.unsqueeze(1).unsqueeze(3), x.to(at::kDouble), at::Scalar(0.0));
  };
  at::Tensor visible = mask.unsqueeze(1).unsqueeze(2).logical_and(mask.unsqueeze(1).unsqueeze(3));
  if (input.causal) visible = visible.tril();
  return {real(input.q), real(input.k), real(input.v), real(g), mask, visible};
}

// (B,H,N,d) → (B,heads,N,D/heads), feature by feature in the order of D.
at::Tensor cut(const at::Tensor& x, std::int64_t heads) {
  const std::int64_t width = x.size(1) * x.size(3);
  return x.permute({0, 2, 1, 3}).reshape({x.size(0), x.size(2), heads, width / heads}).permute({0, 2, 1, 3});
}

// Weights from their logarithms: exp(ℓ − log Σ exp ℓ) over visible keys; a row without any gives 0.
Result normalised(const Tokens& tokens, const at::Tensor& logarithms, std::int64_t heads) {
  const at::Tensor seen = logarithms.masked_fill(tokens.visible.logical_not(), -INFINITY);
  const at::Tensor total = at::logsumexp(seen, -1, true);
  const at::Tensor weights = at::where(at::isinf(total).logical_or(tokens.visible.logical_not()),
                                       at::Scalar(0.0), (seen - total).exp());
  const at::Tensor v = cut(tokens.v, heads), g = cut(tokens.g, heads);
  return {cut(at::einsum("bhct,bhtd->bhcd", {weights, v}), tokens.q.size(1)), weights,
          at::einsum("bhct,bhtd,bhcd->bct", {weights, v, g})};
}

Result softmax(const AttentionInput& input, const at::Tensor& g, std::int64_t heads) {
  const Tokens tokens = tokens_of(input, g);
  const std::int64_t count = heads == 0 ? input.q.size(1) : heads;
  const at::Tensor q = cut(tokens.q, count), k = cut(tokens.k, count);
  return normalised(tokens, at::einsum("bhcd,bhtd->bhct", {q, k}) / std::sqrt(static_cast<double>(q.size(3))),
                    count);
}

// log φ of each side's tokens.
using LogMap = std::function<at::Tensor(const at::Tensor& x, bool is_query, const KernelParameters&)>;

Result linear(const AttentionInput& input, const KernelParameters& parameters, const at::Tensor& g,
              const LogMap& map) {
  const Tokens tokens = tokens_of(input, g);
  const at::Tensor query = map(tokens.q, true, parameters), key = map(tokens.k, false, parameters);
  std::vector<at::Tensor> logarithms; // log Σ_f φ_f(q_c) φ_f(k_t), a query at a time
  for (std::int64_t c = 0; c < query.size(2); ++c)
    logarithms.push_back(at::logsumexp(query.slice(2, c, c + 1) + key, -1));
  return normalised(tokens, at::stack(logarithms, 2), input.q.size(1));
}

Result hydra_cosine(const AttentionInput& input, const at::Tensor& g) {
  const Tokens tokens = tokens_of(input, g);
  const std::int64_t width = tokens.q.size(1) * tokens.q.size(3);
  const auto unit = [&](const at::Tensor& x) {
    const at::Tensor rows = cut(x, width).squeeze(3); // (B,D,N)
    return rows / (rows * rows).sum(1, true).sqrt().clamp_min(1e-12);
  };
  const at::Tensor query = unit(tokens.q), key = unit(tokens.k);
  const at::Tensor v = cut(tokens.v, width).squeeze(3), cut_g = cut(tokens.g, width).squeeze(3);
  const at::Tensor visible = tokens.visible.squeeze(1).to(at::kDouble); // (B,N,N)
  const at::Tensor out = at::einsum("bfc,bft,bft,bct->bfc", {query, key, v, visible});
  const at::Tensor rank_one = at::einsum("bfc,bft,bct->bfct", {query, key, visible});
  const std::int64_t heads = tokens.q.size(1);
  return {cut(out.unsqueeze(3), heads), rank_one.unflatten(1, {heads, width / heads}).sum(2),
          at::einsum("bfc,bft,bft,bct,bfc->bct", {query, key, v, visible, cut_g})};
}

at::Tensor hedgehog_map(const at::Tensor& x, const std::string& side, const KernelParameters& parameters) {
  at::Tensor y = x;
  if (parameters.contains(side + ".weight"))
    y = at::einsum("bhnd,hde->bhne", {y, parameters.at(side + ".weight").to(at::kDouble)});
  if (parameters.contains(side + ".bias")) y = y + parameters.at(side + ".bias").to(at::kDouble).unsqueeze(1);
  return at::cat({y, -y}, -1);
}

Row softmax_row(const std::string& spec, std::int64_t heads = 0) {
  return {spec, true, [heads](const AttentionInput& input, const KernelParameters&, const at::Tensor& g) {
            return softmax(input, g, heads);
          }};
}

Row linear_row(const std::string& spec, bool exponential, const LogMap& map) {
  return {spec, exponential,
          [map](const AttentionInput& input, const KernelParameters& parameters, const at::Tensor& g) {
            return linear(input, parameters, g, map);
          }};
}

Row hedgehog_row(const std::string& spec, const std::string& key_side) {
  return linear_row(spec, true,
                    [key_side](const at::Tensor& x, bool is_query, const KernelParameters& parameters) {
                      return hedgehog_map(x, is_query ? "query_map" : key_side, parameters);
                    });
}

} // namespace

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      softmax_row("softmax"),
      softmax_row("softmax:heads=1", 1),
      softmax_row("sdpa"),
      softmax_row("sdpa:heads=1", 1),
      {"hydra-cosine", false,
       [](const AttentionInput& input, const KernelParameters&, const at::Tensor& g) {
         return hydra_cosine(input, g);
       }},
      linear_row("elu", false,
                 [](const at::Tensor& x, bool, const KernelParameters&) {
                   return at::where(x > 0, at::log(x.clamp_min(0) + 1), x); // log of 1 + ELU(x)
                 }),
      linear_row("relu", false,
                 [](const at::Tensor& x, bool, const KernelParameters&) { return at::log(x.clamp_min(0)); }),
      linear_row("exp-t1", true, [](const at::Tensor& x, bool, const KernelParameters&) { return x; }),
      linear_row("exp-t2", true, [](const at::Tensor& x, bool, const KernelParameters&) { return 2 * x; }),
      hedgehog_row("hedgehog", "key_map"),
      hedgehog_row("hedgehog:shared=1", "query_map"),
      hedgehog_row("hedgehog:bias=0", "key_map"),
      linear_row("hedgehog-untrained", true,
                 [](const at::Tensor& x, bool, const KernelParameters&) {
                   return at::cat({x, -x}, -1);
                 }),
  };
  return table;
}

} // namespace hydrascope::reference
