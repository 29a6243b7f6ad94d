#include "tests/engine/attention/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "engine/attention/own/map_source.h"

namespace hydrascope::reference {
namespace {

// The real tokens in double precision, masked ones replaced by 0, with the mask always there.
struct Tokens {
  at::Tensor q, k, v, g, mask; // (B,H,N,d), mask (B,N)
  at::Tensor visible;          // (B,1,N,N): query c may look at token t
};

at::Tensor mask_of(const AttentionInput& input) {
  if (input.mask.defined()) return input.mask.to(at::kBool);
  return at::ones({input.q.size(0), input.q.size(2)}, at::TensorOptions().dtype(at::kBool));
}

Tokens tokens_of(const AttentionInput& input, const at::Tensor& g) {
  const at::Tensor mask = mask_of(input);
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

// What follows from weights (B,h,N,N).
Result from_weights(const Tokens& tokens, const at::Tensor& weights) {
  const std::int64_t heads = weights.size(1);
  const at::Tensor v = cut(tokens.v, heads), g = cut(tokens.g, heads);
  return {cut(at::einsum("bhct,bhtd->bhcd", {weights, v}), tokens.q.size(1)), weights,
          (weights * at::einsum("bhcd,bhtd->bhct", {g, v})).sum(1)};
}

// Weights from their logarithms: exp(ℓ − log Σ exp ℓ) over visible keys; a row without any gives 0.
Result normalised(const Tokens& tokens, const at::Tensor& logarithms) {
  const at::Tensor seen = logarithms.masked_fill(tokens.visible.logical_not(), -INFINITY);
  const at::Tensor total = at::logsumexp(seen, -1, true);
  return from_weights(tokens, at::where(at::isinf(total).logical_or(tokens.visible.logical_not()),
                                        at::Scalar(0.0), (seen - total).exp()));
}

at::Tensor scores(const Tokens& tokens, std::int64_t heads) {
  const at::Tensor q = cut(tokens.q, heads), k = cut(tokens.k, heads);
  return at::einsum("bhcd,bhtd->bhct", {q, k}) / std::sqrt(static_cast<double>(q.size(3)));
}

Result softmax(const AttentionInput& input, const at::Tensor& g, std::int64_t heads) {
  const Tokens tokens = tokens_of(input, g);
  return normalised(tokens, scores(tokens, heads == 0 ? input.q.size(1) : heads));
}

// Whether the token at `place` of `extent` places is in the window of the query at `own`.
bool in_window(std::int64_t own, std::int64_t place, std::int64_t extent, std::int64_t w, bool blocks) {
  if (blocks) return own / w == place / w;
  const std::int64_t width = std::min(w, extent);
  const std::int64_t first = std::clamp<std::int64_t>(own - w / 2, 0, extent - width);
  return first <= place && place < first + width;
}

// Which token is in the window of which query, (B,1,N,N): on a grid, or among the real tokens in their order.
at::Tensor windows(const AttentionInput& input, const Tokens& tokens, std::int64_t w, bool blocks,
                   const TokenLayout& layout) {
  const auto [prefix, rows, columns] = layout;
  const std::int64_t count = input.q.size(2);
  at::Tensor near = at::zeros({input.q.size(0), 1, count, count}, at::TensorOptions().dtype(at::kBool));
  for (std::int64_t b = 0; b < input.q.size(0); ++b) {
    std::vector<std::int64_t> ranks; // of each token among the real ones
    std::int64_t real = 0;
    for (std::int64_t i = 0; i < count; ++i) ranks.push_back(tokens.mask[b][i].item<bool>() ? real++ : real);
    const auto sees = [&, rank = std::cref(ranks)](std::int64_t c, std::int64_t t) {
      if (rows == 0) {
        const std::int64_t own = rank.get()[static_cast<std::size_t>(c)];
        const std::int64_t place = rank.get()[static_cast<std::size_t>(t)];
        if (input.causal && !blocks) return place > own - w; // the last w tokens
        return in_window(own, place, real, w, blocks);
      }
      if (c < prefix || t < prefix) return true;
      return in_window((c - prefix) / columns, (t - prefix) / columns, rows, w, blocks) &&
             in_window((c - prefix) % columns, (t - prefix) % columns, columns, w, blocks);
    };
    bool* const cells = near.select(0, b).data_ptr<bool>();
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t t = 0; t < count; ++t) cells[c * count + t] = sees(c, t);
  }
  return near;
}

Result local_window(const AttentionInput& input, const at::Tensor& g, std::int64_t asked, bool blocks) {
  Tokens tokens = tokens_of(input, g);
  const std::int64_t w = asked > 0 ? asked : input.layout.rows > 0 ? 14 : 64;
  tokens.visible = tokens.visible.logical_and(windows(input, tokens, w, blocks, input.layout));
  return normalised(tokens, scores(tokens, input.q.size(1)));
}

// log φ of each side's tokens; mask (B,N).
using LogMap = std::function<at::Tensor(const at::Tensor& x, bool is_query, const KernelParameters&,
                                        const at::Tensor& mask)>;

// log Σ_f φ_f(q_c) φ_f(k_t), (B,H,N,N).
at::Tensor log_products(const Tokens& tokens, const KernelParameters& parameters, const LogMap& map) {
  const at::Tensor query = map(tokens.q, true, parameters, tokens.mask),
                   key = map(tokens.k, false, parameters, tokens.mask);
  std::vector<at::Tensor> logarithms; // a query at a time
  for (std::int64_t c = 0; c < query.size(2); ++c)
    logarithms.push_back(at::logsumexp(query.slice(2, c, c + 1) + key, -1));
  return at::stack(logarithms, 2);
}

Result linear(const AttentionInput& input, const KernelParameters& parameters, const at::Tensor& g,
              const LogMap& map) {
  const Tokens tokens = tokens_of(input, g);
  return normalised(tokens, log_products(tokens, parameters, map));
}

at::Tensor log_polynomial(const at::Tensor& s) { return (1 + s + s * s / 2).log(); }

Result taylor(const AttentionInput& input, const at::Tensor& g) {
  const Tokens tokens = tokens_of(input, g);
  return normalised(tokens, log_polynomial(scores(tokens, input.q.size(1))));
}

// Softmax terms within windows of w tokens, `log_linear` of the tokens beyond.
Result hybrid(const AttentionInput& input, const at::Tensor& g, std::int64_t w,
              const std::function<at::Tensor(const Tokens&)>& log_linear) {
  const Tokens tokens = tokens_of(input, g);
  return normalised(tokens, at::where(windows(input, tokens, w, false, {}), scores(tokens, input.q.size(1)),
                                      log_linear(tokens)));
}

Result linear_cosine(const AttentionInput& input, const at::Tensor& g, std::int64_t heads, bool whole_rows) {
  const Tokens tokens = tokens_of(input, g);
  const std::int64_t count = heads == 0 ? input.q.size(1) : heads;
  const auto unit = [&](const at::Tensor& x) {
    const at::Tensor parts = cut(x, whole_rows ? 1 : count);
    return cut(parts / (parts * parts).sum(3, true).sqrt().clamp_min(1e-12), count);
  };
  return from_weights(tokens, at::einsum("bhcd,bhtd->bhct", {unit(tokens.q), unit(tokens.k)}) *
                                  tokens.visible.to(at::kDouble));
}

// φ of D-wide rows (B,N,D), mask (B,N,1).
using RowMap = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& mask)>;

// out = φ_Q(Q) ⊙ Σ_t φ_K(K)_t ⊙ V_t, feature by feature.
Result hydra(const AttentionInput& input, const at::Tensor& g, const RowMap& query_map, const RowMap& key_map,
             bool from_layer_input = false) {
  const Tokens tokens = tokens_of(input, g);
  const at::Tensor mask = tokens.mask.unsqueeze(2);
  const auto rows = [](const at::Tensor& x) { return cut(x, 1).squeeze(1); }; // (B,N,D)
  const auto real = [&](const at::Tensor& x) { return at::where(mask, x, at::Scalar(0.0)); };
  const at::Tensor source = from_layer_input ? real(input.layer_input.to(at::kDouble)) : rows(tokens.q);
  const at::Tensor visible = tokens.visible.squeeze(1).to(at::kDouble); // (B,N,N)
  const std::int64_t heads = input.q.size(1), width = input.q.size(3);
  const auto per_head = [&](const at::Tensor& x) { return x.unflatten(2, {heads, width}).transpose(1, 2); };
  if (input.causal) { // each query by itself, of a sequence that ends with it
    std::vector<at::Tensor> outs, weights, contributions;
    for (std::int64_t c = 0; c < source.size(1); ++c) {
      const at::Tensor seen = tokens.visible.squeeze(1).select(1, c).unsqueeze(2); // (B,N,1)
      const at::Tensor query = real(query_map(source, seen)).slice(1, c, c + 1);
      const at::Tensor key = key_map(rows(tokens.k), seen) * seen.to(at::kDouble);
      const at::Tensor gated = key * rows(tokens.v);
      outs.push_back(query * gated.sum(1, true));
      weights.push_back(at::einsum("bhcd,bhtd->bhct", {per_head(query), per_head(key)}));
      contributions.push_back((query * rows(tokens.g).slice(1, c, c + 1) * gated).sum(2));
    }
    return {per_head(at::cat(outs, 1)), at::cat(weights, 2), at::stack(contributions, 1)};
  }
  const at::Tensor query = real(query_map(source, mask)), key = real(key_map(rows(tokens.k), mask));
  const at::Tensor gated = key * rows(tokens.v);
  const at::Tensor out = query * at::einsum("bct,btf->bcf", {visible, gated});
  return {per_head(out),
          at::einsum("bhcd,bhtd->bhct", {per_head(query), per_head(key)}) * visible.unsqueeze(1),
          at::einsum("bcf,btf->bct", {query * rows(tokens.g), gated}) * visible};
}

at::Tensor unit_row(const at::Tensor& x, const at::Tensor&) {
  return x / (x * x).sum(2, true).sqrt().clamp_min(1e-12);
}
at::Tensor unit_row_l1(const at::Tensor& x, const at::Tensor&) {
  return x / x.abs().sum(2, true).clamp_min(1e-12);
}
at::Tensor tanh_row(const at::Tensor& x, const at::Tensor&) { return x.tanh(); }
at::Tensor sigmoid_row(const at::Tensor& x, const at::Tensor&) { return 1 / (1 + (-x).exp()); }
at::Tensor mean_row(const at::Tensor& x, const at::Tensor& mask) {
  return x / mask.sum(1, true).clamp_min(1).to(at::kDouble).sqrt();
}
at::Tensor softmax_over_tokens(const at::Tensor& x, const at::Tensor& mask) {
  const at::Tensor seen = at::where(mask, x, at::full({}, -INFINITY, x.options()));
  const at::Tensor total = at::logsumexp(seen, 1, true);
  return at::where(at::isinf(total).logical_or(mask.logical_not()), at::Scalar(0.0), (seen - total).exp());
}

Row hydra_row(const std::string& spec, const RowMap& query, const RowMap& key,
              bool from_layer_input = false) {
  return {spec, false, [=](const AttentionInput& input, const KernelParameters&, const at::Tensor& g) {
            return hydra(input, g, query, key, from_layer_input);
          }};
}

// Grouped heads share a map.
at::Tensor projected(const at::Tensor& x, const std::string& side, const KernelParameters& parameters) {
  const auto of_heads = [&](const at::Tensor& map) {
    return map.to(at::kDouble).repeat_interleave(x.size(1) / map.size(0), 0);
  };
  at::Tensor y = x;
  if (parameters.contains(side + ".weight"))
    y = at::einsum("bhnd,hde->bhne", {y, of_heads(parameters.at(side + ".weight"))});
  if (parameters.contains(side + ".bias")) y = y + of_heads(parameters.at(side + ".bias")).unsqueeze(1);
  return y;
}

at::Tensor log_softmax(const at::Tensor& y) { return y - at::logsumexp(y, -1, true); }

Row softmax_row(const std::string& spec, std::int64_t heads = 0) {
  return {spec, true, [heads](const AttentionInput& input, const KernelParameters&, const at::Tensor& g) {
            return softmax(input, g, heads);
          }};
}

Row window_row(const std::string& spec, std::int64_t w, bool blocks) {
  return {spec, true, [=](const AttentionInput& input, const KernelParameters&, const at::Tensor& g) {
            return local_window(input, g, w, blocks);
          }};
}

Row cosine_row(const std::string& spec, std::int64_t heads, bool whole_rows) {
  return {spec, false, [=](const AttentionInput& input, const KernelParameters&, const at::Tensor& g) {
            return linear_cosine(input, g, heads, whole_rows);
          }};
}

Row linear_row(const std::string& spec, bool exponential, const LogMap& map) {
  return {spec, exponential,
          [map](const AttentionInput& input, const KernelParameters& parameters, const at::Tensor& g) {
            return linear(input, parameters, g, map);
          }};
}

Row based_row(const std::string& spec, std::int64_t w) {
  return {spec, true, [w](const AttentionInput& input, const KernelParameters&, const at::Tensor& g) {
            return hybrid(input, g, w, [](const Tokens& tokens) {
              return log_polynomial(scores(tokens, tokens.q.size(1)));
            });
          }};
}

Row hybrid_row(const std::string& spec, std::int64_t w, const std::string& key_side) {
  const LogMap map = [key_side](const at::Tensor& x, bool is_query, const KernelParameters& parameters,
                                const at::Tensor&) {
    return projected(x, is_query ? "query_map" : key_side, parameters);
  };
  return {spec, true,
          [w, map](const AttentionInput& input, const KernelParameters& parameters, const at::Tensor& g) {
            return hybrid(input, g, w,
                          [&](const Tokens& tokens) { return log_products(tokens, parameters, map); });
          }};
}

Row trained_row(const std::string& spec, const std::string& key_side, bool exponential,
                const std::function<at::Tensor(const at::Tensor& y)>& log_map) {
  return linear_row(
      spec, exponential,
      [=](const at::Tensor& x, bool is_query, const KernelParameters& parameters, const at::Tensor&) {
        return log_map(projected(x, is_query ? "query_map" : key_side, parameters));
      });
}

at::Tensor log_relu(const at::Tensor& y) { return at::log(y.clamp_min(0)); }
at::Tensor both_signs(const at::Tensor& y) { return at::cat({y, -y}, -1); }

at::Tensor log_favor(const at::Tensor& x, bool, const KernelParameters& parameters, const at::Tensor&) {
  const at::Tensor omega = parameters.at("omega").to(at::kDouble);
  const at::Tensor scaled = x / std::pow(static_cast<double>(x.size(3)), 0.25);
  return at::einsum("bhnd,md->bhnm", {scaled, omega}) - (scaled * scaled).sum(-1, true) / 2 -
         0.5 * std::log(static_cast<double>(omega.size(0)));
}

LogMap log_cosformer(std::int64_t fixed) {
  return [fixed](const at::Tensor& x, bool, const KernelParameters&, const at::Tensor& mask) {
    const at::Tensor i = at::cumsum(mask.to(at::kDouble), 1);
    const at::Tensor m = fixed > 0 ? at::full_like(i, static_cast<double>(fixed))
                                   : mask.to(at::kDouble).sum(1, true).clamp_min(1).expand(i.sizes());
    const at::Tensor angle = (std::numbers::pi * i / (2 * m)).unsqueeze(1).unsqueeze(3);
    // The cosine of a right angle is 0, whatever its rounding.
    return at::cat({log_relu(x) + at::log(angle.cos().clamp_min(0)), log_relu(x) + at::log(angle.sin())}, -1);
  };
}

// The registry's kernels once more, typed as sources of `phi`: those in assets/maps.
void add_typed_rows(std::vector<Row>& rows) {
  const auto registry_names = [](const KernelParameters& typed, const std::string& name) {
    KernelParameters parameters;
    for (const auto& [key, value] : typed) {
      const std::string side = key.substr(0, key.find('.')), rest = key.substr(key.find('.') + 1);
      const std::string map = side == "query" ? "query_map." : "key_map.";
      if (rest == "W")
        parameters[map + "weight"] =
            name == "t2r" ? value * std::sqrt(2 / static_cast<double>(value.size(2))) : value;
      else if (rest == "b")
        parameters[map + "bias"] = value;
      else
        parameters[key] = value; // omega
    }
    return parameters;
  };
  for (const std::string& name : bundled_maps()) {
    const auto known = std::ranges::find(rows, name, &Row::spec);
    if (known == rows.end()) throw std::out_of_range(name);
    rows.push_back(
        {"phi:" + name, known->exponential,
         [compute = known->compute, registry_names, name](
             const AttentionInput& input, const KernelParameters& parameters, const at::Tensor& g) {
           return compute(input, registry_names(parameters, name), g);
         }});
  }
}

std::vector<Row> table() {
  const auto unmapped = [](double factor) {
    return [factor](const at::Tensor& x, bool, const KernelParameters&, const at::Tensor&) {
      return factor * x;
    };
  };
  const auto joint = [](const at::Tensor& y) { return log_softmax(both_signs(2 * y)); };
  const auto two = [](const at::Tensor& y) { return at::cat({log_softmax(y), log_softmax(-y)}, -1); };
  std::vector<Row> rows{
      softmax_row("softmax"),
      softmax_row("softmax:heads=1", 1),
      softmax_row("sdpa"),
      softmax_row("sdpa:heads=1", 1),
      softmax_row("flash"),
      softmax_row("flash:heads=1", 1),
      window_row("local-window", 0, false),
      window_row("local-window:w=5", 5, false),
      window_row("local-window:mode=blocks,w=6", 6, true),
      cosine_row("linear-cosine", 0, false),
      cosine_row("linear-cosine:heads=1", 1, false),
      cosine_row("linear-cosine:norm=row", 0, true),
      hydra_row("hydra-cosine", unit_row, unit_row),
      hydra_row("hydra-tanh-l2", tanh_row, unit_row),
      hydra_row("hydra-mean", mean_row, mean_row),
      hydra_row("hydra-cosine-ln", unit_row, unit_row),
      hydra_row("hydra-tanh-l2-ln", tanh_row, unit_row),
      hydra_row("hydra-tanh-softmax", tanh_row, softmax_over_tokens),
      hydra_row("hydra-sigmoid-softmax", sigmoid_row, softmax_over_tokens),
      hydra_row("hydra-l1", unit_row_l1, unit_row_l1),
      hydra_row("poly-nl", mean_row, mean_row, true),
      linear_row("elu", false,
                 [](const at::Tensor& x, bool, const KernelParameters&, const at::Tensor&) {
                   return at::where(x > 0, at::log(x.clamp_min(0) + 1), x); // log of 1 + ELU(x)
                 }),
      linear_row(
          "relu", false,
          [](const at::Tensor& x, bool, const KernelParameters&, const at::Tensor&) { return log_relu(x); }),
      linear_row("relu-squared", false,
                 [](const at::Tensor& x, bool, const KernelParameters&, const at::Tensor&) {
                   return 2 * log_relu(x);
                 }),
      trained_row("t2r", "key_map", false, log_relu),
      trained_row("t2r:shared=1", "query_map", false, log_relu),
      trained_row("t2r-hh", "key_map", false, log_relu),
      linear_row("performer", true, log_favor),
      linear_row("performer:features=24,seed=7", true, log_favor),
      linear_row("cosformer", false, log_cosformer(0)),
      linear_row("cosformer:m=5000", false, log_cosformer(5000)),
      linear_row("exp-t1", true, unmapped(1)),
      linear_row("exp-t2", true, unmapped(2)),
      {"taylor", false,
       [](const AttentionInput& input, const KernelParameters&, const at::Tensor& g) {
         return taylor(input, g);
       }},
      trained_row("hedgehog", "key_map", true, both_signs),
      trained_row("hedgehog:shared=1", "query_map", true, both_signs),
      trained_row("hedgehog:bias=0", "key_map", true, both_signs),
      trained_row("hedgehog-exp", "key_map", true, [](const at::Tensor& y) { return y; }),
      trained_row("hedgehog-softmax", "key_map", true, two),
      trained_row("hedgehog-softmax:form=eq5,shared=1", "query_map", true, log_softmax),
      trained_row("hedgehog-softmax:form=joint,bias=0", "key_map", true, joint),
      trained_row("hedgehog-untrained", "none", true, both_signs),
      hybrid_row("hedgehog-window", 64, "key_map"),
      hybrid_row("hedgehog-window:w=5", 5, "key_map"),
      hybrid_row("hedgehog-window:shared=1,w=16", 16, "query_map"),
      based_row("based", 16),
      based_row("based:w=1", 1),
      trained_row("phi", "none", true, both_signs),
  };
  add_typed_rows(rows);
  return rows;
}

} // namespace

at::Tensor layer_norm(const AttentionInput& input, const at::Tensor& out,
                      const KernelParameters& parameters) {
  const at::Tensor rows = cut(out.to(at::kDouble), 1).squeeze(1);
  const at::Tensor centred = rows - rows.mean(2, true);
  const at::Tensor normed = centred / ((centred * centred).mean(2, true) + 1e-5).sqrt() *
                                parameters.at("norm.weight").to(at::kDouble) +
                            parameters.at("norm.bias").to(at::kDouble);
  return cut(at::where(mask_of(input).unsqueeze(2), normed, at::Scalar(0.0)).unsqueeze(1), out.size(1));
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = table();
  return all;
}

const Row& row(const std::string& spec) {
  for (const Row& one : rows())
    if (one.spec == spec) return one;
  throw std::out_of_range(spec);
}

} // namespace hydrascope::reference
