// Normalised linear attention over any feature map (Hedgehog paper, Eq. 2):
// out_i = φ(q_i)·Σ_j φ(k_j) v_jᵀ / φ(q_i)·Σ_j φ(k_j).
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>

#include "engine/attention/causal_sums.h"
#include "engine/attention/cost.h"
#include "engine/attention/feature_maps/feature_map.h"
#include "engine/attention/tokens.h"
#include "engine/plain/error.h"

namespace hydrascope {
namespace {

// φ of the query rows asked for and of all keys, masked keys 0, so that all products and sums are finite.
struct Features {
  at::Tensor query; // (B,H,R,d′)
  at::Tensor key;   // (B,H,N,d′)
};

// From log-features: keys scaled by their largest value per feature, queries by what that leaves. Both scales
// cancel in the quotient, so no gradient flows through them.
Features scaled_features(const at::Tensor& log_query, const at::Tensor& log_key, const at::Tensor& mask) {
  at::Tensor largest;
  if (mask.defined()) {
    const at::Tensor absent = mask.logical_not().unsqueeze(1).unsqueeze(-1);
    largest = log_key.detach().masked_fill(absent, -INFINITY).amax(2, true);
    largest = largest.masked_fill(at::isinf(largest), 0); // a sequence without a real token
  } else {
    largest = log_key.detach().amax(2, true);
  }
  const at::Tensor exponent = log_query + largest;
  // A masked key may exceed the largest real one: zero it before exp, so that no gradient meets an infinity.
  return {(exponent - exponent.detach().amax(-1, true)).exp_(),
          select_tokens(select_tokens(log_key - largest, mask).exp_(), mask)};
}

// numerator/denominator, 0 where the denominator is 0: there every product is 0 and with them the numerator.
at::Tensor quotient(const at::Tensor& numerator, const at::Tensor& denominator) {
  return numerator / denominator.masked_fill(denominator == 0, 1);
}

class NormalisedLinear final : public Kernel {
public:
  NormalisedLinear(KernelSpec kernel_spec, std::unique_ptr<FeatureMap> map)
      : Kernel(std::move(kernel_spec)), map_(std::move(map)) {}

  Plan plan(const AttentionShape&) const override { return {{}, "composed"}; }

  KernelParameters initial_parameters(std::int64_t heads, std::int64_t head_width) const override {
    return map_->initial_parameters(heads, head_width);
  }

  AttentionOutput run(const AttentionInput& input, const KernelParameters& parameters) const override {
    check_input(input);
    const RealTokens real = real_tokens(input);
    CausalSums sums;
    if (input.causal) {
      sums = causal(real, parameters);
    } else {
      const Features features = all_features(real, parameters, {});
      sums.numerator = at::matmul(features.query, at::matmul(features.key.transpose(2, 3), real.v));
      sums.denominator = at::matmul(features.query, features.key.sum(2).unsqueeze(-1));
    }
    const at::Tensor out = select_tokens(quotient(sums.numerator, sums.denominator), real.mask);
    at::Tensor zero = (sums.denominator == 0).squeeze(-1);
    if (real.mask.defined()) zero = zero.logical_and(real.mask.unsqueeze(1));
    return {.out = out.to(input.q.scalar_type()),
            .path = "composed",
            .zero_denominators = zero.sum().item<std::int64_t>()};
  }

  at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                     const at::Tensor& rows) const override {
    check_input(input);
    const RealTokens real = real_tokens(input);
    at::Tensor products;
    if (!input.causal) {
      const Features features = all_features(real, parameters, rows);
      products = at::matmul(features.query, features.key.transpose(2, 3));
    } else {
      products = causal_products(real, parameters, rows);
    }
    return select_tokens(quotient(products, products.sum(-1, true)), take_mask(real.mask, rows));
  }

  at::Tensor contributions(const AttentionInput& input, const KernelParameters& parameters,
                           std::optional<std::int64_t> query, const at::Tensor& g) const override {
    // One query needs one row of weights, which the general way forms in O(N); all queries need none.
    if (query || input.causal) return Kernel::contributions(input, parameters, query, g);
    const at::NoGradGuard no_gradients;
    check_input(input);
    const RealTokens real = real_tokens(input);
    const Features features = all_features(real, parameters, {});
    const at::Tensor denominator = at::matmul(features.query, features.key.sum(2).unsqueeze(-1));
    const at::Tensor shares = quotient(features.query, denominator);
    const at::Tensor gathered =
        at::matmul(shares.transpose(2, 3), select_tokens(g.to(shares.scalar_type()), real.mask));
    return (at::matmul(features.key, gathered) * real.v).sum(3).sum(1);
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto width = static_cast<double>(map_->width(shape.head_width));
    const double products = 2 * static_cast<double>(shape.tokens) * model_width(shape) * width;
    const double divisions = static_cast<double>(shape.tokens) * static_cast<double>(shape.heads) * width;
    return {
        .multiply_accumulates = static_cast<double>(shape.batch) * (products + divisions + map_->cost(shape)),
        .bytes = bytes_moved(shape)};
  }

private:
  at::Tensor mapped(const at::Tensor& x, Side side, const RealTokens& real,
                    const KernelParameters& parameters, const at::Tensor& rows) const {
    return map_->features(x, side, {.parameters = parameters, .mask = real.mask, .rows = rows});
  }

  Features all_features(const RealTokens& real, const KernelParameters& parameters,
                        const at::Tensor& rows) const {
    const at::Tensor query = mapped(take_tokens(real.q, rows), Side::query, real, parameters, rows);
    const at::Tensor key = mapped(real.k, Side::key, real, parameters, {});
    if (map_->logarithmic()) return scaled_features(query, key, real.mask);
    return {query, select_tokens(key, real.mask)};
  }

  CausalSums causal(const RealTokens& real, const KernelParameters& parameters) const {
    const at::Tensor query = mapped(real.q, Side::query, real, parameters, {});
    const at::Tensor key = mapped(real.k, Side::key, real, parameters, {});
    if (map_->logarithmic()) return causal_sums_of_logarithms(query, key, real.v, real.mask);
    return causal_sums(query, select_tokens(key, real.mask), real.v);
  }

  at::Tensor causal_products(const RealTokens& real, const KernelParameters& parameters,
                             const at::Tensor& rows) const {
    const at::Tensor indices = rows_or_all(rows, real.k.size(2), real.k);
    const at::Tensor query = mapped(take_tokens(real.q, rows), Side::query, real, parameters, rows);
    const at::Tensor key = mapped(real.k, Side::key, real, parameters, {});
    if (map_->logarithmic()) return causal_products_of_logarithms(query, key, indices, real.mask);
    const at::Tensor products = at::matmul(query, select_tokens(key, real.mask).transpose(2, 3));
    const at::Tensor keys = at::arange(real.k.size(2), indices.options());
    return at::where(keys <= indices.unsqueeze(1), products, at::Scalar(0));
  }

  std::unique_ptr<FeatureMap> map_;
};

} // namespace

RegistryEntry normalised_linear(KernelInfo info, MakeFeatureMap make_map) {
  info.family = "normalised linear";
  info.complexity = "O(N D d′)";
  info.normalised = true;
  info.weights_positive = true;
  info.devices = {"cpu", "cuda"};
  return {std::move(info), {}, [make = std::move(make_map)](const KernelSpec& spec) {
            return std::make_unique<NormalisedLinear>(spec, make(spec));
          }};
}

} // namespace hydrascope
