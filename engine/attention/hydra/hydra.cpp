#include "engine/attention/hydra/hydra.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/fmax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

constexpr double layer_norm_epsilon = 1e-5;

// φ(Q), φ(K), V as rows (B,N,D), masked rows 0.
struct Rows {
  at::Tensor query, key, value, mask;
};

// Σ_t softmax over tokens(K)_t ⊙ V_t, accumulated block by block with a running maximum of each feature.
class TokenSoftmaxSum {
public:
  // key, value (B,n,D) of a block, mask (B,n) or undefined.
  void add(const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask) {
    const at::Tensor absent = mask.defined() ? mask.logical_not().unsqueeze(-1) : at::Tensor();
    at::Tensor largest = (absent.defined() ? key.masked_fill(absent, -INFINITY) : key).amax(1, true);
    if (largest_.defined()) largest = at::maximum(largest, largest_);
    const at::Tensor reference = largest.masked_fill(at::isinf(largest), 0); // no real token yet
    const at::Tensor share = select_rows((key - reference).exp(), mask);
    const at::Tensor shrunk = largest_.defined() ? (largest_ - reference).exp() : at::Tensor();
    const auto gather = [&](at::Tensor& sum, const at::Tensor& part) {
      sum = sum.defined() ? sum * shrunk + part : part;
    };
    gather(weighted_, (share * value).sum(1, true));
    gather(total_, share.sum(1, true));
    largest_ = largest;
  }
  at::Tensor result() const { return weighted_ / total_.masked_fill(total_ == 0, 1); }

private:
  at::Tensor largest_, weighted_, total_; // (B,1,D)
};

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
    if (maps_.over_tokens == OverTokens::softmax && shape.causal)
      return {{.ok = false, .reason = "its softmax over tokens looks at later tokens: it has no causal form"},
              {}};
    for (const HydraFusedPath& fused : maps_.fused)
      if (fused.takes(shape)) return {{}, fused.path};
    return {{}, shape.gradients || shape.causal ? Path::at_once : Path::in_blocks};
  }

  KernelParameters initial_parameters(std::int64_t heads, std::int64_t head_width, int) const override {
    if (!maps_.layer_norm) return {};
    return {{"norm.weight", at::ones({heads * head_width})}, {"norm.bias", at::zeros({heads * head_width})}};
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
    const Rows rows = mapped_rows(input);
    const std::int64_t heads = input.q.size(1), tokens = input.q.size(2);
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
    const Rows rows = mapped_rows(input);
    const at::Tensor gated = rows.key * rows.value;
    if (query) {
      const at::Tensor gate = rows.query.select(1, *query);
      // φ of a masked query is 0, but its g may be anything.
      const at::Tensor direction =
          at::where(gate == 0, at::Scalar(0), gate * g.to(gate.scalar_type()).flatten(1));
      const at::Tensor all = at::matmul(gated, direction.unsqueeze(2)).squeeze(2);
      if (!input.causal) return all;
      return at::where(at::arange(all.size(1), all.options()) <= static_cast<double>(*query), all,
                       at::Scalar(0));
    }
    const at::Tensor directions =
        rows.query * select_rows(to_rows(g.to(rows.query.scalar_type())), rows.mask); // (B,N,D)
    // If attention is causal, token t contributes to the queries from t on, else to all.
    const at::Tensor gathered =
        input.causal ? at::cumsum(directions.flip(1), 1).flip(1) : directions.sum(1, true);
    return (gated * gathered).sum(2);
  }

  // The D rank-one matrices φ(Q)_f φ(K)_fᵀ times V, entry by entry in double precision, against the output.
  double weights_check(const AttentionInput& input, const KernelParameters& parameters,
                       const at::Tensor& query_rows) const override {
    const at::NoGradGuard no_gradients;
    const at::Tensor out = to_rows(run(input, parameters).out).to(at::kDouble);
    const Rows rows = mapped_rows(input);
    const at::Tensor key = rows.key.to(at::kDouble), value = rows.value.to(at::kDouble);
    const at::Tensor indices = query_rows.defined() ? query_rows.cpu() : at::arange(key.size(1), at::kLong);
    at::Tensor worst = at::zeros({}, key.options());
    for (std::int64_t i = 0; i < indices.size(0); ++i) {
      const std::int64_t c = indices[i].item<std::int64_t>();
      const std::int64_t reach = input.causal ? c + 1 : key.size(1);
      const at::Tensor matrices = rows.query.slice(1, c, c + 1).to(at::kDouble) * key.slice(1, 0, reach);
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
    const Rows rows = mapped_rows(input);
    return GlobalVector{
        (rows.key * rows.value).sum(1),
        query_rows.defined() ? rows.query.index_select(1, query_rows.to(rows.query.device())) : rows.query};
  }

  Features features(const AttentionInput& input, const KernelParameters&, const at::Tensor& query_rows,
                    const at::Tensor& key_rows) const override {
    const at::NoGradGuard no_gradients;
    check(input);
    const Rows rows = mapped_rows(input);
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
    const Rows rows = mapped_rows(input);
    const at::Tensor gated = rows.key * rows.value;
    const at::Tensor global = input.causal ? at::cumsum(gated, 1) : gated.sum(1, true);
    const at::Tensor out = to_heads(rows.query * global, input.q.size(1));
    return {.out = out.to(output_type(input))};
  }

private:
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

  // 1/√T of each sequence, (B,1,1), T its number of real tokens.
  static at::Tensor root_of_mean(const at::Tensor& rows, const at::Tensor& mask) {
    const auto options = rows.options();
    if (!mask.defined()) return at::full({1, 1, 1}, static_cast<double>(rows.size(1)), options).rsqrt();
    return mask.sum(1, true).clamp_min(1).to(options).rsqrt().unsqueeze(-1);
  }

  // φ of a block's rows, masked rows 0; `scale` as root_of_mean() or undefined.
  at::Tensor mapped(const RowMap& map, const at::Tensor& x, const at::Tensor& mask,
                    const at::Tensor& scale) const {
    at::Tensor rows = map.of(select_rows(x, mask));
    if (scale.defined()) rows = rows * scale;
    return select_rows(rows, mask);
  }

  Rows mapped_rows(const AttentionInput& input) const {
    const at::Tensor mask = real_mask(input);
    const at::ScalarType type = compute_type(input.q.scalar_type());
    const auto rows = [&](const at::Tensor& x) { return to_rows(x).to(type); };
    const at::Tensor value = select_rows(rows(input.v), mask);
    const at::Tensor scale = maps_.over_tokens == OverTokens::mean ? root_of_mean(value, mask) : at::Tensor();
    const at::Tensor source = maps_.query_is_layer_input ? input.layer_input.to(type) : rows(input.q);
    const at::Tensor query = mapped(maps_.query, source, mask, scale);
    at::Tensor key = mapped(maps_.key, rows(input.k), mask, scale);
    if (maps_.over_tokens == OverTokens::softmax) {
      if (mask.defined()) { // a sequence without a real token gives any finite numbers, cleared below
        const at::Tensor absent = mask.logical_not().logical_and(mask.any(1, true));
        key = key.masked_fill(absent.unsqueeze(-1), -INFINITY);
      }
      key = select_rows(at::softmax(key, 1), mask);
    }
    return {query, key, value, mask};
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
      const at::Tensor length = at::zeros({1, 1, 1}, input.q.options().dtype(type)).expand({1, tokens, 1});
      scale = root_of_mean(length, mask);
    }

    at::Tensor global; // Σ_t φ(K)_t ⊙ V_t, (B,1,D)
    TokenSoftmaxSum softmax;
    for (const TokenBlock& block : blocks) {
      const at::Tensor part_mask = cut_mask(block);
      const at::Tensor key = mapped(maps_.key, cut(input.k, block), part_mask, scale);
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
      return to_heads(mapped(maps_.query, source, cut_mask(block), scale) * global, heads)
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
