#include "engine/attention/hydra.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>

#include "engine/attention/cost.h"
#include "engine/attention/tokens.h"
#include "engine/plain/error.h"

namespace hydrascope {
namespace {

// φ(Q), φ(K), V as rows (B,N,D).
struct Rows {
  at::Tensor query, key, value, mask;
};

class Hydra final : public Kernel {
public:
  Hydra(KernelSpec kernel_spec, HydraMaps maps) : Kernel(std::move(kernel_spec)), maps_(std::move(maps)) {}

  Plan plan(const AttentionShape& shape) const override {
    for (const HydraFusedPath& path : maps_.fused)
      if (const std::string name = path.available(shape); !name.empty()) return {{}, name};
    return {{}, "composed"};
  }

  AttentionOutput run(const AttentionInput& input, const KernelParameters&) const override {
    check_input(input);
    if (!needs_gradient(input)) {
      const AttentionShape shape = shape_of(input);
      for (const HydraFusedPath& path : maps_.fused)
        if (const std::string name = path.available(shape); !name.empty())
          return {.out = path.run(input, real_mask(input)), .path = name};
    }
    const Rows rows = mapped_rows(input);
    const at::Tensor gated = rows.key * rows.value;
    // The global vector Σ_t φ(K)_t ⊙ V_t, or its running value.
    const at::Tensor global = input.causal ? at::cumsum(gated, 1) : gated.sum(1, true);
    const at::Tensor out = to_heads(rows.query * global, input.q.size(1));
    return {.out = out.to(input.q.scalar_type()), .path = "composed"};
  }

  at::Tensor weights(const AttentionInput& input, const KernelParameters&,
                     const at::Tensor& asked) const override {
    check_input(input);
    const Rows rows = mapped_rows(input);
    const std::int64_t heads = input.q.size(1), tokens = input.q.size(2);
    const at::Tensor query = take_tokens(to_heads(rows.query, heads), asked);
    const at::Tensor w = at::matmul(query, to_heads(rows.key, heads).transpose(2, 3));
    if (!input.causal) return w;
    const at::Tensor queries = rows_or_all(asked, tokens, query).unsqueeze(1);
    return at::where(at::arange(tokens, queries.options()) <= queries, w, at::Scalar(0));
  }

  // Eq. 15–17: (φ(Q)_c ⊙ φ(K)_t ⊙ V_t)·g, for all queries Σ_c (φ(Q)_c ⊙ g_c) first. O(N D).
  at::Tensor contributions(const AttentionInput& input, const KernelParameters&,
                           std::optional<std::int64_t> query, const at::Tensor& g) const override {
    const at::NoGradGuard no_gradients;
    check_input(input);
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
    // Token t reaches the queries from t on where attention is causal, else all.
    const at::Tensor gathered =
        input.causal ? at::cumsum(directions.flip(1), 1).flip(1) : directions.sum(1, true);
    return (gated * gathered).sum(2);
  }

  // The D rank-one matrices φ(Q)_f φ(K)_fᵀ times V, entry by entry in double precision, against the output.
  double weights_check(const AttentionInput& input, const KernelParameters& parameters,
                       const at::Tensor& asked) const override {
    const at::NoGradGuard no_gradients;
    const at::Tensor out = to_rows(run(input, parameters).out).to(at::kDouble);
    const Rows rows = mapped_rows(input);
    const at::Tensor key = rows.key.to(at::kDouble), value = rows.value.to(at::kDouble);
    const at::Tensor indices = rows_or_all(asked, key.size(1), key).cpu();
    double worst = 0;
    for (std::int64_t i = 0; i < indices.size(0); ++i) {
      const std::int64_t c = indices[i].item<std::int64_t>();
      const std::int64_t reach = input.causal ? c + 1 : key.size(1);
      const at::Tensor matrices = rows.query.slice(1, c, c + 1).to(at::kDouble) * key.slice(1, 0, reach);
      const at::Tensor sums = (matrices * value.slice(1, 0, reach)).sum(1);
      worst = std::max(worst, (sums - out.select(1, c)).abs().max().item<double>());
    }
    return worst;
  }

  Cost cost(const AttentionShape& shape) const override {
    return {.multiply_accumulates =
                2 * static_cast<double>(shape.batch) * static_cast<double>(shape.tokens) * model_width(shape),
            .bytes = bytes_moved(shape)};
  }

private:
  Rows mapped_rows(const AttentionInput& input) const {
    const at::Tensor mask = real_mask(input);
    const at::ScalarType type = compute_type(input.q.scalar_type());
    const auto rows = [&](const at::Tensor& x) { return select_rows(to_rows(x).to(type), mask); };
    return {maps_.query(rows(input.q), mask), maps_.key(rows(input.k), mask), rows(input.v), mask};
  }

  HydraMaps maps_;
};

} // namespace

std::unique_ptr<Kernel> make_hydra(const KernelSpec& spec, const HydraMaps& maps) {
  return std::make_unique<Hydra>(spec, maps);
}

} // namespace hydrascope
