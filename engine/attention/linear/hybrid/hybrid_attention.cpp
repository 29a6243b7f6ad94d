#include "engine/attention/linear/hybrid/hybrid_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "engine/attention/interface/parameters.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/hybrid/far_sums.h"
#include "engine/attention/linear/hybrid/hybrid_decoding.h"
#include "engine/attention/linear/hybrid/window_sums.h"

namespace hydrascope {
namespace {

// x (B,H,N,w) with the tokens of each sequence in the order (B or 1,N).
at::Tensor in_order(const at::Tensor& x, const at::Tensor& order) {
  return at::gather(x, 2, order.unsqueeze(1).unsqueeze(-1).expand(x.sizes()));
}

// Where each token stands in the order.
at::Tensor places_of(const at::Tensor& order) { return at::argsort(order, std::int64_t{1}); }

// The real tokens of an input, those of each sequence first; k and v have the key/value heads alone.
struct OrderedTokens {
  at::Tensor q, k, v;
  at::Tensor mask;    // (B,N); undefined: all real
  at::Tensor order;   // (B,N): the token that stands there; undefined: each in its place
  at::Tensor lengths; // (B or 1,1)
  at::Tensor original_mask;

  // Back in the input's order: x (B,H,N,w).
  at::Tensor restored(const at::Tensor& x) const {
    return order.defined() ? select_tokens(in_order(x, places_of(order)), original_mask) : x;
  }
};

OrderedTokens ordered(const AttentionInput& input, const std::int64_t key_heads) {
  OrderedTokens tokens;
  const RealTokens real = real_tokens(input);
  const std::int64_t count = input.q.size(2);
  const auto options = at::TensorOptions(at::kLong).device(input.q.device());
  tokens.q = real.q;
  tokens.k = one_of_each_group(real.k, key_heads);
  tokens.v = one_of_each_group(real.v, key_heads);
  if (!real.mask.defined()) {
    tokens.lengths = at::full({1, 1}, count, options);
    return tokens;
  }
  tokens.original_mask = real.mask;
  tokens.lengths = real.mask.sum(1, true);
  tokens.order = at::argsort(real.mask.logical_not().to(at::kByte), /*stable=*/true, 1);
  tokens.mask = at::arange(count, options).unsqueeze(0) < tokens.lengths;
  for (at::Tensor* x : {&tokens.q, &tokens.k, &tokens.v}) *x = in_order(*x, tokens.order);
  return tokens;
}

class HybridAttention final : public Kernel {
public:
  HybridAttention(KernelSpec kernel_spec, std::unique_ptr<FeatureMap> map, const std::int64_t window)
      : Kernel(std::move(kernel_spec)),
        map_(std::move(map)),
        window_(positive_parameter(spec(), "w").value_or(window)) {}

  Plan plan(const AttentionShape& shape) const override {
    if (std::string reason = map_->refusal(shape); !reason.empty())
      return {{.ok = false, .reason = std::move(reason)}, {}};
    if (far_sums_are_fused(*map_, in_compute_type(shape))) return {{}, Path::fused_cpu};
    return {{}, Path::at_once};
  }

  KernelParameters initial_parameters(const HeadShape& shape, const int layer) const override {
    return map_->initial_parameters(shape, layer);
  }
  std::vector<std::string> fixed_parameters() const override { return map_->fixed_parameters(); }

  at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                     const at::Tensor& rows) const override {
    require_support(input);
    const OrderedTokens tokens = ordered(input, key_heads_of(input, *map_, input.q.size(1)));
    const std::int64_t count = input.q.size(2);
    const at::Tensor places = rows_or_all(rows, count, input.q); // of the asked rows among the ordered tokens
    if (!tokens.order.defined()) return weights_of(tokens, input, parameters, places.unsqueeze(0));
    const at::Tensor place_of = places_of(tokens.order);
    const at::Tensor w = weights_of(tokens, input, parameters, place_of.index_select(1, places));
    const at::Tensor columns = place_of.unsqueeze(1).unsqueeze(1).expand(w.sizes());
    return select_tokens(at::gather(w, 3, columns), take_mask(tokens.original_mask, places));
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto tokens = static_cast<double>(shape.tokens);
    const auto near = static_cast<double>(std::min(window_, shape.tokens));
    const auto key_heads = static_cast<double>(heads_of(shape).of_keys());
    const double both_widths = model_width(shape) + key_heads * static_cast<double>(shape.head_width);
    const double of_feature = tokens * (both_widths + static_cast<double>(shape.heads));
    const auto features = static_cast<double>(map_->width(shape.head_width));
    const auto repeated = static_cast<double>(map_->repeated_features(shape.head_width));
    const double in_window = 2 * tokens * model_width(shape) * near;
    const auto batch = static_cast<double>(shape.batch);
    return {.multiply_accumulates = batch * (in_window + of_feature * features + map_->cost(shape)),
            .bytes = bytes_moved(shape),
            .saved = batch * of_feature * repeated};
  }

protected:
  AttentionOutput compute(Path, const AttentionInput& input,
                          const KernelParameters& parameters) const override {
    const auto no_autocast = without_float16_sums(input.q.scalar_type());
    const OrderedTokens tokens = ordered(input, key_heads_of(input, *map_, input.q.size(1)));
    const Windows windows = windows_of(input.q.size(2), window_, input.causal, tokens.lengths);
    WindowSums sums = softmax_sums(tokens.q, tokens.k, tokens.v, windows, window_, input.causal);
    const std::int64_t count = input.q.size(2);
    if (count > window_) {
      const AttentionShape shape = in_compute_type(shape_of(input, parameters));
      // Of queries and keys in this order or the reversed one, which begins at `first`.
      const auto far = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& first, const std::int64_t delay) {
        const at::Tensor key = first + delay, last = first + tokens.lengths;
        const at::Tensor ranges = at::cat({key, key + tokens.lengths - window_, last}, 1);
        return make_far_sums(*map_, shape, parameters)
            ->extend(q, delayed(k, delay), delayed(v, delay), ranges);
      };
      // Of T tokens, query i meets the keys j ≤ i − w or, in encoders, j ≤ i − ⌊w/2⌋ − 1 with j < T − w, as
      // the last windows begin there, and in reversed order j ≥ i + w − ⌊w/2⌋ with j ≥ w.
      sums = added(sums, far(tokens.q, tokens.k, tokens.v, at::zeros_like(tokens.lengths),
                             input.causal ? window_ : window_ / 2 + 1));
      if (!input.causal) {
        const auto turned = [](const at::Tensor& x) { return x.flip(2); };
        const WindowSums behind = far(turned(tokens.q), turned(tokens.k), turned(tokens.v),
                                      count - tokens.lengths, window_ - window_ / 2);
        sums = added(sums, {turned(behind.numerator), turned(behind.denominator), turned(behind.reference)});
      }
    }
    return {.out = tokens.restored(quotient_of(sums)).to(input.q.scalar_type())};
  }

  std::string growth_refusal(const AttentionShape&) const override { return map_->growth_refusal(); }
  std::unique_ptr<DecodingState> make_decoding(const AttentionShape& shape,
                                               const KernelParameters& parameters) const override {
    return make_hybrid_decoding(*map_, window_, shape, parameters);
  }

private:
  static AttentionShape in_compute_type(AttentionShape shape) {
    shape.dtype = compute_type(shape.dtype);
    return shape;
  }

  // Each token in the place of the one `delay` tokens later.
  static at::Tensor delayed(const at::Tensor& x, const std::int64_t delay) {
    return at::constant_pad_nd(x.slice(2, 0, x.size(2) - delay), {0, 0, delay, 0});
  }

  static FeatureContext context(const AttentionInput& input, const KernelParameters& parameters) {
    return {.parameters = parameters,
            .heads = heads_of(shape_of(input)),
            .mask = {},
            .rows = {},
            .tokens = input.q.size(2),
            .device = input.q.device()};
  }

  // The weights (B,H,R,N) of the queries at places (B or 1,R) of the ordered tokens.
  at::Tensor weights_of(const OrderedTokens& tokens, const AttentionInput& input,
                        const KernelParameters& parameters, const at::Tensor& places) const {
    const std::int64_t heads = input.q.size(1), count = input.q.size(2), batch = input.q.size(0);
    const at::Tensor rows = places.expand({batch, -1});
    const at::Tensor q =
        at::gather(tokens.q, 2, rows.unsqueeze(1).unsqueeze(-1).expand({batch, heads, -1, input.q.size(3)}));
    const at::Tensor k = for_each_head(tokens.k, heads);
    const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
    const at::Tensor scores = at::matmul(q * scale, k.transpose(2, 3));
    const Windows windows = windows_of(count, window_, input.causal, tokens.lengths);
    const auto of_rows = [&](const at::Tensor& x) { return at::gather(x.expand({batch, count}), 1, rows); };
    const Windows own{of_rows(windows.first), of_rows(windows.last)}; // (B,R)
    const at::Tensor keys = at::arange(count, rows.options());
    const at::Tensor before = keys < own.first.unsqueeze(-1), after = keys >= own.last.unsqueeze(-1);
    const at::Tensor near = before.logical_or(after).logical_not().unsqueeze(1); // (B,1,R,N)

    const FeatureContext where = context(input, parameters);
    at::Tensor products, reference;
    if (map_->logarithmic()) {
      const at::Tensor query = map_->features(q, Side::query, where),
                       key = for_each_head(map_->features(tokens.k, Side::key, where), heads);
      CausalProducts found = products_outside(query, key, own, tokens.mask, input.causal);
      products = found.products;
      reference = found.reference;
    } else {
      products =
          map_->products_are_cheaper()
              ? map_->products(q, k)
              : at::matmul(map_->features(q, Side::query, where),
                           for_each_head(map_->features(tokens.k, Side::key, where), heads).transpose(2, 3));
      at::Tensor far = input.causal ? before : before.logical_or(after);
      if (tokens.mask.defined()) far = far.logical_and(tokens.mask.unsqueeze(1));
      far = far.unsqueeze(1);
      products = at::where(far, products, at::Scalar(0));
      reference =
          at::zeros_like(scores.slice(3, 0, 1)).masked_fill(far.any(-1, true).logical_not(), -INFINITY);
    }
    const at::Tensor masked = scores.masked_fill(near.logical_not(), -INFINITY);
    const at::Tensor common = at::maximum(masked.detach().amax(-1, true), reference);
    const at::Tensor finite_common = common.masked_fill(at::isinf(common), 0);
    const at::Tensor w = (masked - finite_common).exp() + products * (reference - finite_common).exp();
    return quotient(w, w.sum(-1, true));
  }

  std::unique_ptr<FeatureMap> map_;
  std::int64_t window_;
};

} // namespace

RegistryEntry hybrid_attention(KernelInfo info, MakeFeatureMap make_map, const std::int64_t window) {
  info.family = info.trainable ? KernelFamily::trained : KernelFamily::normalised_linear;
  info.complexity = "O(N D (w + d′))";
  info.normalised = info.weights_positive = info.positional = true;
  info.devices = {"cpu", "cuda"};
  info.parameters.insert(
      info.parameters.begin(),
      {.name = "w",
       .kind = ParameterInfo::Kind::number,
       .meaning = "tokens of the window in which softmax is kept: of decoders the last ones",
       .initial = std::to_string(window),
       .range = [window](const LayerShape& shape) {
         return ParameterRange{.least = 1, .most = shape.tokens, .initial = std::min(window, shape.tokens)};
       }});
  return {std::move(info), {}, [make = std::move(make_map), window](const KernelSpec& spec) {
            return std::make_unique<HybridAttention>(spec, make(spec), window);
          }};
}

} // namespace hydrascope
