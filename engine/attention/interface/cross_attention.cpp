#include "engine/attention/interface/cross_attention.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/where.h>

#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

class CrossAttention final : public Kernel, public FeatureKernel {
public:
  explicit CrossAttention(std::shared_ptr<const Kernel> inner)
      : Kernel(inner->spec()),
        inner_(std::move(inner)),
        mapped_(dynamic_cast<const FeatureKernel*>(inner_.get())) {}

  Plan plan(const AttentionShape& shape) const override {
    if (info().positional)
      return {.support = {.ok = false,
                          .reason =
                              "its weights depend on the distance of query and key, which cross-attention "
                              "does not have"}};
    AttentionShape piece = shape;
    piece.tokens = shape.tokens - shape.queries;
    piece.queries = 0;
    return inner_->plan(piece);
  }
  std::int64_t weight_heads(const AttentionShape& shape) const override {
    return inner_->weight_heads(shape);
  }
  KernelParameters initial_parameters(const HeadShape& shape, int layer) const override {
    return inner_->initial_parameters(shape, layer);
  }
  std::vector<std::string> fixed_parameters() const override { return inner_->fixed_parameters(); }
  at::Tensor finish(const at::Tensor& out, const at::Tensor& mask,
                    const KernelParameters& parameters) const override {
    return inner_->finish(out, mask, parameters);
  }
  Cost cost(const AttentionShape& shape) const override { return inner_->cost(shape); }

  at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                     const at::Tensor& rows) const override {
    require_support(input);
    const std::int64_t keys = input.q.size(2) - input.queries;
    const at::Tensor chosen = rows_or_all(rows, input.q.size(2), input.q);
    const at::Tensor asked = take_tokens(input.q, chosen); // 0 in rows of keys
    std::vector<at::Tensor> parts;
    for (std::int64_t first = 0; first < chosen.size(0); first += keys) {
      const std::int64_t count = std::min(keys, chosen.size(0) - first);
      const at::Tensor own = at::arange(count, chosen.options());
      parts.push_back(inner_->weights(piece(input, asked.narrow(2, first, count)), parameters, own));
    }
    const at::Tensor of_queries = (chosen < input.queries).unsqueeze(-1);
    return at::constant_pad_nd(at::where(of_queries, at::cat(parts, 2), 0.0), {input.queries, 0});
  }

  // Derived weights are not compared themselves: the inner kernel checks its matrices on each piece.
  double weights_check(const AttentionInput& input, const KernelParameters& parameters,
                       const at::Tensor& rows) const override {
    if (!info().implied_weights) return Kernel::weights_check(input, parameters, rows);
    const at::NoGradGuard no_gradients;
    require_support(input);
    const std::int64_t keys = input.q.size(2) - input.queries;
    const at::Tensor chosen = rows_or_all(rows, input.q.size(2), input.q);
    const at::Tensor asked = take_tokens(input.q, chosen.masked_select(chosen < input.queries));
    double worst = 0;
    for (std::int64_t first = 0; first < asked.size(2); first += keys) {
      const std::int64_t count = std::min(keys, asked.size(2) - first);
      const at::Tensor own = at::arange(count, chosen.options());
      worst = std::max(worst,
                       inner_->weights_check(piece(input, asked.narrow(2, first, count)), parameters, own));
    }
    return worst;
  }

  std::optional<GlobalVector> global_vector(const AttentionInput& input, const KernelParameters& parameters,
                                            const at::Tensor& rows) const override {
    const at::Tensor asked = take_tokens(input.q, rows);
    const std::int64_t count = std::min(asked.size(2), input.q.size(2) - input.queries);
    return inner_->global_vector(piece(input, asked.narrow(2, 0, count)), parameters,
                                 at::arange(count, asked.options().dtype(at::kLong)));
  }

  bool has_features() const override { return mapped_ != nullptr; }
  Features features(const AttentionInput& input, const KernelParameters& parameters,
                    const at::Tensor& query_rows, const at::Tensor& key_rows) const override {
    const std::int64_t tokens = input.q.size(2), keys = tokens - input.queries;
    const at::Tensor chosen = rows_or_all(query_rows, tokens, input.q);
    const at::Tensor asked = take_tokens(input.q, chosen);
    Features all;
    std::vector<at::Tensor> queries;
    for (std::int64_t first = 0; first < chosen.size(0); first += keys) {
      const std::int64_t count = std::min(keys, chosen.size(0) - first);
      Features part = mapped_->features(piece(input, asked.narrow(2, first, count)), parameters,
                                        at::arange(count, chosen.options()), {});
      queries.push_back(part.query);
      all.key = part.key;
      all.rescaled = part.rescaled;
    }
    all.query = at::where((chosen < input.queries).unsqueeze(-1), at::cat(queries, 2), 0.0);
    all.key = take_tokens(at::constant_pad_nd(all.key, {0, 0, input.queries, 0}), key_rows);
    return all;
  }

protected:
  AttentionOutput compute(Path /*path*/, const AttentionInput& input,
                          const KernelParameters& parameters) const override {
    const std::int64_t keys = input.q.size(2) - input.queries;
    AttentionOutput all;
    std::vector<at::Tensor> parts;
    for (std::int64_t first = 0; first < input.queries; first += keys) {
      const std::int64_t count = std::min(keys, input.queries - first);
      AttentionOutput part = inner_->run(piece(input, input.q.narrow(2, first, count)), parameters);
      parts.push_back(part.out.narrow(2, 0, count));
      all.path = part.path;
      // Counts rows that fill a piece as well: those of queries are counted by what they hold.
      if (part.zero_denominators.read() > 0)
        all.zero_denominators += RowCount((parts.back() == 0).all(-1).sum());
    }
    all.out = at::constant_pad_nd(at::cat(parts, 2), {0, 0, 0, keys});
    return all;
  }

private:
  // At most M queries, filled up to M, on the M keys.
  static AttentionInput piece(const AttentionInput& input, const at::Tensor& queries) {
    const std::int64_t keys = input.q.size(2) - input.queries;
    AttentionInput piece;
    piece.key_heads = input.key_heads;
    piece.q = at::constant_pad_nd(queries, {0, 0, 0, keys - queries.size(2)});
    piece.k = input.k.narrow(2, input.queries, keys);
    piece.v = input.v.narrow(2, input.queries, keys);
    return piece;
  }

  std::shared_ptr<const Kernel> inner_;
  const FeatureKernel* mapped_; // the inner kernel's second interface, or null
};

} // namespace

std::shared_ptr<const Kernel> for_cross_attention(std::shared_ptr<const Kernel> kernel) {
  return std::make_shared<const CrossAttention>(std::move(kernel));
}

} // namespace hydrascope
