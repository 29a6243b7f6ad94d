#include "engine/attention/hydra/hydra.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/fmax.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/hydra/hydra_decoding.h"
#include "engine/attention/hydra/hydra_rows.h"
#include "engine/attention/hydra/token_softmax.h"
#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

constexpr double layer_norm_epsilon = 1e-5;

class Hydra final : public Kernel, public FeatureKernel {
public:
  Hydra(KernelSpec kernel_spec, HydraMaps maps) : Kernel(std::move(kernel_spec)), maps_(std::move(maps)) {
    if (maps_.query.fused && maps_.key.fused) maps_.fused.push_back(hydra_on_cpu());
  }

  Plan plan(const AttentionShape& shape) const override {
    if (maps_.refusal)
      if (std::string reason = maps_.refusal(shape); !reason.empty())
        return {{.ok = false, .reason = std::move(reason)}, {}};
    if (maps_.query_is_layer_input && !shape.has_layer_input)
      return {{.ok = false, .reason = "it needs the layer's own input x (B,N,D) beside q, k and v"}, {}};
    for (const HydraFusedPath& fused : maps_.fused)
      if (fused.takes(shape)) return {{}, fused.path};
    return {{}, shape.gradients || shape.causal ? Path::at_once : Path::in_blocks};
  }

  KernelParameters initial_parameters(const HeadShape& shape, int) const override {
    if (!maps_.layer_norm) return {};
    const std::int64_t width = shape.heads * shape.head_width;
    return {{"norm.weight", at::ones({width})}, {"norm.bias", at::zeros({width})}};
  }

  at::Tensor finish(const at::Tensor& out, const at::Tensor& mask,
                    const KernelParameters& parameters) const override {
    if (!maps_.layer_norm) return out;
    const at::Tensor rows = to_rows(out).to(compute_type(out.scalar_type()));
    const at::Tensor normed =
        at::layer_norm(rows, {rows.size(2)}, norm_parameter(parameters, "norm.weight", rows),
                       norm_parameter(parameters, "norm.bias", rows), layer_norm_epsilon);
    const at::Tensor real = mask.defined() ? mask.to(at::kBool) : mask;
    return to_heads(select_rows(normed, real), out.size(1));
  }

  at::Tensor weights(const AttentionInput& input, const KernelParameters&,
                     const at::Tensor& query_rows) const override {
    check(input);
    const HydraRows rows = hydra_rows(maps_, input);
    const std::int64_t heads = input.q.size(1), tokens = input.q.size(2);
    if (rows.log_totals.defined())
      return wide_weights(rows, heads, rows_or_all(query_rows, tokens, rows.query));
    const at::Tensor query = take_tokens(to_heads(rows.query, heads), query_rows);
    const at::Tensor w = at::matmul(query, to_heads(rows.key, heads).transpose(2, 3));
    if (!input.causal) return w;
    const at::Tensor queries = rows_or_all(query_rows, tokens, query).unsqueeze(1);
    return at::where(at::arange(tokens, queries.options()) <= queries, w, at::Scalar(0));
  }

  // Eq. 15–17: (φ(Q)_c ⊙ φ(K)_t ⊙ V_t)·g, for all queries Σ_c (φ(Q)_c ⊙ g_c) first. O(N D).
  at::Tensor contributions(const AttentionInput& input, const KernelParameters&,
                           std::optional<std::int64_t> query, const at::Tensor& g) const override {
    const at::NoGradGuard no_gradients;
    check(input);
    const HydraRows rows = hydra_rows(maps_, input);
    const std::int64_t tokens = input.q.size(2);
    if (query) {
      const at::Tensor gate = rows.query.select(1, *query);
      // φ of a masked query is 0, but its g may be anything.
      const at::Tensor direction =
          at::where(gate == 0, at::Scalar(0), gate * g.to(gate.scalar_type()).flatten(1));
      const std::int64_t reach = input.causal ? *query + 1 : tokens;
      const at::Tensor gated = rows.keys_of(reach - 1) * rows.value.slice(1, 0, reach);
      const at::Tensor all = at::matmul(gated, direction.unsqueeze(2)).squeeze(2);
      return at::constant_pad_nd(all, {0, tokens - reach});
    }
    const at::Tensor directions =
        rows.query * select_rows(to_rows(g.to(rows.query.scalar_type())), rows.mask); // (B,N,D)
    if (rows.log_totals.defined()) {
      at::Tensor gathered = at::zeros_like(rows.value); // Σ_c φ_K(K)_t ⊙ φ(Q)_c ⊙ g_c
      for_wide_rows(rows, rows_or_all({}, tokens, directions), [&](const at::Tensor& queries) {
        gathered += (rows.keys_of(queries) * directions.index_select(1, queries).unsqueeze(2)).sum(1);
      });
      return (gathered * rows.value).sum(2);
    }
    // If attention is causal, token t contributes to the queries from t on, else to all.
    const at::Tensor gathered =
        input.causal ? at::cumsum(directions.flip(1), 1).flip(1) : directions.sum(1, true);
    return (rows.key * rows.value * gathered).sum(2);
  }

  // The D rank-one matrices φ(Q)_f φ(K)_fᵀ times V, entry by entry in double precision, against the output.
  double weights_check(const AttentionInput& input, const KernelParameters& parameters,
                       const at::Tensor& query_rows) const override {
    const at::NoGradGuard no_gradients;
    const at::Tensor out = to_rows(run(input, parameters).out).to(at::kDouble);
    const HydraRows rows = hydra_rows(maps_, input);
    const at::Tensor value = rows.value.to(at::kDouble);
    const at::Tensor indices = query_rows.defined() ? query_rows.cpu() : at::arange(value.size(1), at::kLong);
    at::Tensor worst = at::zeros({}, value.options());
    for (std::int64_t i = 0; i < indices.size(0); ++i) {
      const std::int64_t c = indices[i].item<std::int64_t>();
      const std::int64_t reach = input.causal ? c + 1 : value.size(1);
      const at::Tensor key = rows.keys_of(reach - 1).to(at::kDouble);
      const at::Tensor matrices = rows.query.slice(1, c, c + 1).to(at::kDouble) * key;
      const at::Tensor sums = (matrices * value.slice(1, 0, reach)).sum(1);
      worst = at::fmax(worst, (sums - out.select(1, c)).abs().max());
    }
    return worst.item<double>();
  }

  std::optional<GlobalVector> global_vector(const AttentionInput& input, const KernelParameters&,
                                            const at::Tensor& query_rows) const override {
    check(input);
    if (input.causal)
      throw UsageError(spec().text(), "where attention is causal, every query has a global vector of its own",
                       "leave out --causal");
    const HydraRows rows = hydra_rows(maps_, input);
    return GlobalVector{
        (rows.key * rows.value).sum(1),
        query_rows.defined() ? rows.query.index_select(1, query_rows.to(rows.query.device())) : rows.query};
  }

  Features features(const AttentionInput& input, const KernelParameters&, const at::Tensor& query_rows,
                    const at::Tensor& key_rows) const override {
    const at::NoGradGuard no_gradients;
    check(input);
    HydraRows rows = hydra_rows(maps_, input);
    if (rows.log_totals.defined()) {
      // Each feature of the keys over its largest; what queries multiply it by stays a finite number.
      at::Tensor largest = rows.key.amax(1, true);
      largest = largest.masked_fill(largest == -INFINITY, 0);
      constexpr double largest_exponent = 80;
      rows.query = rows.query * (largest - rows.log_totals).clamp_max(largest_exponent).exp();
      rows.key = (rows.key - largest).exp();
    }
    return {.query = take_tokens(rows.query.unsqueeze(1), query_rows),
            .key = take_tokens(rows.key.unsqueeze(1), key_rows)};
  }

  Cost cost(const AttentionShape& shape) const override {
    return {.multiply_accumulates =
                2 * static_cast<double>(shape.batch) * static_cast<double>(shape.tokens) * model_width(shape),
            .bytes = bytes_moved(shape)};
  }

protected:
  AttentionOutput compute(const Path path, const AttentionInput& input,
                          const KernelParameters&) const override {
    check_layer_input(input);
    for (const HydraFusedPath& fused : maps_.fused)
      if (fused.path == path) return {.out = fused.run(maps_, input, real_mask(input))};
    if (path == Path::in_blocks) return {.out = run_in_blocks(input)};
    const HydraRows rows = hydra_rows(maps_, input);
    at::Tensor global = rows.sums;
    if (!global.defined()) {
      const at::Tensor gated = rows.key * rows.value;
      global = input.causal ? at::cumsum(gated, 1) : gated.sum(1, true);
    }
    const at::Tensor out = to_heads(rows.query * global, input.q.size(1));
    return {.out = out.to(output_type(input))};
  }

  std::string growth_refusal(const AttentionShape&) const override { return {}; }
  std::unique_ptr<DecodingState> make_decoding(const AttentionShape& shape,
                                               const KernelParameters&) const override {
    return make_hydra_decoding(maps_, shape);
  }

private:
  // Calls use(some) for tiles of the queries (R) int64 whose φ_K fit in memory.
  template <typename Use>
  static void for_wide_rows(const HydraRows& rows, const at::Tensor& queries, const Use& use) {
    const std::int64_t step = tile_rows(rows.key.size(0) * rows.key.size(2), rows.key.size(1));
    for (std::int64_t first = 0; first < queries.size(0); first += step)
      use(queries.slice(0, first, first + step)); // the last may be shorter
  }
  // The weights (B,heads,R,N) of these queries where φ_K depends on the query.
  static at::Tensor wide_weights(const HydraRows& rows, const std::int64_t heads, const at::Tensor& queries) {
    std::vector<at::Tensor> parts;
    for_wide_rows(rows, queries, [&](const at::Tensor& some) {
      const at::Tensor products = rows.keys_of(some) * rows.query.index_select(1, some).unsqueeze(2);
      parts.push_back(products.unflatten(3, {heads, -1}).sum(4).permute({0, 3, 1, 2}));
    });
    return at::cat(parts, 2);
  }

  void check(const AttentionInput& input) const {
    require_support(input);
    check_layer_input(input);
  }
  void check_layer_input(const AttentionInput& input) const {
    if (!maps_.query_is_layer_input) return;
    const at::IntArrayRef q = input.q.sizes();
    if (input.layer_input.sizes() != at::IntArrayRef({q[0], q[2], q[1] * q[3]}))
      throw UsageError("x", fmt::format("its shape is ({})", fmt::join(input.layer_input.sizes().vec(), ",")),
                       fmt::format("for this input it is ({},{},{})", q[0], q[2], q[1] * q[3]));
  }

  // A LayerNorm amplifies small differences: its input is not rounded to a half type.
  at::ScalarType output_type(const AttentionInput& input) const {
    const at::ScalarType type = input.q.scalar_type();
    return maps_.layer_norm ? compute_type(type) : type;
  }

  static std::optional<at::Tensor> norm_parameter(const KernelParameters& parameters, const std::string& name,
                                                  const at::Tensor& rows) {
    const auto found = parameters.find(name);
    if (found == parameters.end() || !found->second.defined()) return std::nullopt;
    if (found->second.sizes() != at::IntArrayRef({rows.size(2)}))
      throw UsageError(name, fmt::format("its shape is ({})", fmt::join(found->second.sizes().vec(), ",")),
                       fmt::format("for this input it is ({})", rows.size(2)));
    return found->second.to(rows.scalar_type());
  }

  at::Tensor run_in_blocks(const AttentionInput& input) const {
    const at::Tensor mask = real_mask(input);
    const at::ScalarType type = compute_type(input.q.scalar_type());
    const std::int64_t tokens = input.q.size(2), heads = input.q.size(1);
    const auto blocks = token_blocks(tokens, input.q.size(0) * heads * input.q.size(3));
    const auto cut = [&](const at::Tensor& x, const TokenBlock& block) {
      return to_rows(x.slice(2, block.first, block.last)).to(type);
    };
    const auto cut_mask = [&](const TokenBlock& block) {
      return mask.defined() ? mask.slice(1, block.first, block.last) : mask;
    };
    at::Tensor scale;
    if (maps_.over_tokens == OverTokens::mean) {
      scale = root_of_mean(mask, tokens, input.q.options().dtype(type));
    }

    at::Tensor global; // Σ_t φ(K)_t ⊙ V_t, (B,1,D)
    TokenSoftmaxSum softmax;
    for (const TokenBlock& block : blocks) {
      const at::Tensor part_mask = cut_mask(block);
      const at::Tensor key = mapped_rows(maps_.key, cut(input.k, block), part_mask, scale);
      const at::Tensor value = select_rows(cut(input.v, block), part_mask);
      if (maps_.over_tokens == OverTokens::softmax) {
        softmax.add(key, value, part_mask);
        continue;
      }
      const at::Tensor part = (key * value).sum(1, true);
      global = global.defined() ? global + part : part;
    }
    if (maps_.over_tokens == OverTokens::softmax) global = softmax.result();

    const auto output = [&](const TokenBlock& block) {
      const at::Tensor source = maps_.query_is_layer_input
                                    ? input.layer_input.slice(1, block.first, block.last).to(type)
                                    : cut(input.q, block);
      return to_heads(mapped_rows(maps_.query, source, cut_mask(block), scale) * global, heads)
          .to(output_type(input));
    };
    if (blocks.size() == 1) return output(blocks.front());
    at::Tensor out = at::empty_like(input.q, input.q.options().dtype(output_type(input)));
    for (const TokenBlock& block : blocks) out.slice(2, block.first, block.last).copy_(output(block));
    return out;
  }

  HydraMaps maps_;
};

} // namespace

std::unique_ptr<Kernel> make_hydra(const KernelSpec& spec, const HydraMaps& maps) {
  return std::make_unique<Hydra>(spec, maps);
}

} // namespace hydrascope
