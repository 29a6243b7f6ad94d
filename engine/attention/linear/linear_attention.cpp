// Linear attention over any feature map, its tokens taken in blocks so that features are never all there at
// once. Normalised (Hedgehog paper, Eq. 2): out_i = φ(q_i)·Σ_j φ(k_j) v_jᵀ / φ(q_i)·Σ_j φ(k_j); without a
// normaliser (Hydra paper, Eq. 7): the numerator alone.
#include <cmath>
#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>

#include "engine/attention/cuda/cuda_gradients.h"
#include "engine/attention/interface/cost.h"
#include "engine/attention/interface/cuda_plugin.h"
#include "engine/attention/interface/features.h"
#include "engine/attention/interface/loop_input.h"
#include "engine/attention/interface/parameter_infos.h"
#include "engine/attention/interface/plugin.h"
#include "engine/attention/interface/spec_values.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/causal_sums.h"
#include "engine/attention/linear/feature_map.h"

namespace hydrascope {
namespace {

// A graph keeps all features anyway, and nothing it keeps may be overwritten.
bool at_once(const AttentionShape& shape) { return shape.gradients || shape.causal; }

// An input's tokens and their features, a block at a time.
class FeatureBlocks {
public:
  FeatureBlocks(const AttentionInput& input, const KernelParameters& parameters, const FeatureMap& map,
                std::int64_t heads)
      : input_(input),
        parameters_(parameters),
        map_(map),
        heads_(heads),
        mask_(real_mask(input)),
        type_(compute_type(input.q.scalar_type())) {
    const std::int64_t tokens = input.q.size(2);
    const std::int64_t width = input.q.size(1) * input.q.size(3) / heads;
    if (at_once(shape_of(input, parameters)))
      blocks_ = {{0, tokens}};
    else
      blocks_ = token_blocks(tokens, input.q.size(0) * heads * map.width(width));
  }

  const std::vector<TokenBlock>& all() const { return blocks_; }
  const at::Tensor& mask() const { return mask_; }
  at::Tensor mask(const TokenBlock& block) const {
    return mask_.defined() ? mask_.slice(1, block.first, block.last) : mask_;
  }

  // (B,h,R,d), masked tokens 0.
  at::Tensor tokens(const at::Tensor& x, const TokenBlock& block) const {
    return resplit(select_tokens(x.slice(2, block.first, block.last).to(type_), mask(block)), heads_);
  }
  at::Tensor value(const TokenBlock& block) const { return tokens(input_.v, block); }
  at::Tensor key_tokens(const TokenBlock& block) const { return tokens(input_.k, block); }
  at::Tensor key(const TokenBlock& block) const { return features(input_.k, Side::key, block); }
  at::Tensor query(const TokenBlock& block) const { return features(input_.q, Side::query, block); }

  // The query rows asked for, undefined = all: their tokens and their features.
  at::Tensor query_tokens(const at::Tensor& rows) const {
    return resplit(select_tokens(take_tokens(input_.q, rows).to(type_), take_mask(mask_, rows)), heads_);
  }
  at::Tensor query_rows(const at::Tensor& rows) const {
    return map_.features(query_tokens(rows), Side::query, context(rows));
  }
  at::Tensor key_rows(const at::Tensor& rows) const {
    const at::Tensor key = select_tokens(take_tokens(input_.k, rows).to(type_), take_mask(mask_, rows));
    return map_.features(resplit(key, heads_), Side::key, context(rows));
  }

private:
  at::Tensor features(const at::Tensor& x, Side side, const TokenBlock& block) const {
    at::Tensor rows;
    if (blocks_.size() > 1) rows = at::arange(block.first, block.last, x.options().dtype(at::kLong));
    return map_.features(tokens(x, block), side, context(rows));
  }
  FeatureContext context(const at::Tensor& rows) const {
    return {.parameters = parameters_, .mask = mask_, .rows = rows, .tokens = input_.q.size(2)};
  }

  const AttentionInput& input_;
  const KernelParameters& parameters_;
  const FeatureMap& map_;
  std::int64_t heads_;
  at::Tensor mask_;
  at::ScalarType type_;
  std::vector<TokenBlock> blocks_;
};

// −∞, the largest of no keys, as a scale: 0 serves.
at::Tensor without_infinity(const at::Tensor& scale) { return scale.masked_fill(at::isinf(scale), 0); }

// The largest log-feature of the real keys, (B,h,1,d′), −∞ where there is none. The scale cancels in the
// quotient, so no gradient flows through it.
at::Tensor largest_key(const at::Tensor& log_key, const at::Tensor& mask) {
  if (!mask.defined()) return log_key.detach().amax(2, true);
  const at::Tensor absent = mask.logical_not().unsqueeze(1).unsqueeze(-1);
  return log_key.detach().masked_fill(absent, -INFINITY).amax(2, true);
}

// The scale of exponential maps' features over all keys of an input: (B,h,1,d′).
at::Tensor scale_of_keys(const FeatureBlocks& tokens) {
  at::Tensor scale;
  for (const TokenBlock& block : tokens.all()) {
    const at::Tensor largest = largest_key(tokens.key(block), tokens.mask(block));
    scale = scale.defined() ? at::maximum(scale, largest) : largest;
  }
  return without_infinity(scale);
}

// exp(log φ(k) − scale). A masked key may exceed the largest real one: it is zeroed before exp, too, so that
// no gradient meets an infinity.
at::Tensor scaled_key(const at::Tensor& log_key, const at::Tensor& scale, const at::Tensor& mask) {
  return select_tokens(select_tokens(log_key - scale, mask).exp(), mask);
}

// exp(log φ(q) + scale), each row over its largest.
at::Tensor scaled_query(const at::Tensor& log_query, const at::Tensor& scale) {
  const at::Tensor exponent = log_query + scale;
  return (exponent - exponent.detach().amax(-1, true)).exp_();
}

// numerator/denominator, 0 where the denominator is 0: there every product is 0 and with them the numerator.
at::Tensor quotient(const at::Tensor& numerator, const at::Tensor& denominator) {
  return numerator / denominator.masked_fill(denominator == 0, 1);
}

// Σ_j φ(k_j) v_jᵀ and Σ_j φ(k_j); features of exponential maps divided by exp(scale).
struct KeySums {
  at::Tensor values; // (B,h,d′,d)
  at::Tensor ones;   // (B,h,d′,1)
  at::Tensor scale;  // (B,h,1,d′); undefined for other maps
};

KeySums sums_over_keys(const FeatureBlocks& tokens, bool logarithmic) {
  KeySums sums;
  for (const TokenBlock& block : tokens.all()) {
    const at::Tensor mask = tokens.mask(block);
    at::Tensor key = tokens.key(block);
    if (logarithmic) {
      const at::Tensor largest = largest_key(key, mask);
      const at::Tensor scale = sums.scale.defined() ? at::maximum(sums.scale, largest) : largest;
      if (sums.scale.defined()) {
        const at::Tensor shrunk = (sums.scale - without_infinity(scale)).exp_().transpose(2, 3);
        sums.values *= shrunk;
        sums.ones *= shrunk;
      }
      sums.scale = scale;
      key = scaled_key(key, without_infinity(scale), mask);
    } else {
      key = select_tokens(key, mask);
    }
    const at::Tensor values = at::matmul(key.transpose(2, 3), tokens.value(block));
    const at::Tensor ones = key.sum(2).unsqueeze(-1);
    sums.values = sums.values.defined() ? sums.values + values : values;
    sums.ones = sums.ones.defined() ? sums.ones + ones : ones;
  }
  if (logarithmic) sums.scale = without_infinity(sums.scale);
  return sums;
}

class LinearAttention final : public Kernel, public FeatureKernel {
public:
  LinearAttention(KernelSpec kernel_spec, std::unique_ptr<FeatureMap> map, bool normalised)
      : Kernel(std::move(kernel_spec)),
        map_(std::move(map)),
        normalised_(normalised),
        heads_(positive_parameter(spec(), "heads")) {}

  std::int64_t weight_heads(const AttentionShape& shape) const override {
    return heads_.value_or(shape.heads);
  }

  Plan plan(const AttentionShape& shape) const override {
    const Support heads = heads_support(heads_, shape);
    if (!heads.ok) return {heads, {}};
    if (const std::string reason = map_->refusal(shape); !reason.empty())
      return {{.ok = false, .reason = reason}, {}};
    return {{}, path_of(shape)};
  }

  KernelParameters initial_parameters(std::int64_t heads, std::int64_t head_width, int layer) const override {
    return map_->initial_parameters(heads, head_width, layer);
  }
  std::vector<std::string> fixed_parameters() const override { return map_->fixed_parameters(); }
  std::optional<LeadingMaps> leading_maps(std::int64_t heads, std::int64_t head_width,
                                          const KernelParameters& parameters) const override {
    return map_->leading_maps(heads, head_width, parameters);
  }

  at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                     const at::Tensor& rows) const override {
    require_support(input);
    const FeatureBlocks tokens = blocks(input, parameters);
    const at::Tensor products =
        input.causal ? causal_products(tokens, rows, input.q.size(2)) : all_products(tokens, rows);
    const at::Tensor w = normalised_ ? quotient(products, products.sum(-1, true)) : products;
    return select_tokens(w, take_mask(tokens.mask(), rows));
  }

  at::Tensor contributions(const AttentionInput& input, const KernelParameters& parameters,
                           std::optional<std::int64_t> query, const at::Tensor& g) const override {
    // One query needs one row of weights, which the general way forms in O(N); all queries need none.
    if (query || input.causal) return Kernel::contributions(input, parameters, query, g);
    const at::NoGradGuard no_gradients;
    require_support(input);
    const FeatureBlocks tokens = blocks(input, parameters);
    const KeySums sums = sums_over_keys(tokens, map_->logarithmic());
    at::Tensor gathered; // Σ_c φ(q_c) g_cᵀ, each row over its denominator: (B,h,d′,d)
    for (const TokenBlock& block : tokens.all()) {
      at::Tensor shares = scaled(tokens.query(block), sums);
      if (normalised_) shares = quotient(shares, at::matmul(shares, sums.ones));
      const at::Tensor part = at::matmul(shares.transpose(2, 3), tokens.tokens(g, block));
      gathered = gathered.defined() ? gathered + part : part;
    }
    std::vector<at::Tensor> parts;
    for (const TokenBlock& block : tokens.all()) {
      const at::Tensor mask = tokens.mask(block);
      const at::Tensor key = map_->logarithmic() ? scaled_key(tokens.key(block), sums.scale, mask)
                                                 : select_tokens(tokens.key(block), mask);
      parts.push_back((at::matmul(key, gathered) * tokens.value(block)).sum(3).sum(1));
    }
    return at::cat(parts, 1);
  }

  Features features(const AttentionInput& input, const KernelParameters& parameters,
                    const at::Tensor& query_rows, const at::Tensor& key_rows) const override {
    const at::NoGradGuard no_gradients;
    require_support(input);
    const FeatureBlocks tokens = blocks(input, parameters);
    const at::Tensor key_mask = take_mask(tokens.mask(), key_rows);
    Features result{tokens.query_rows(query_rows), tokens.key_rows(key_rows), map_->logarithmic()};
    if (result.rescaled) {
      const at::Tensor scale = scale_of_keys(tokens);
      result.query = scaled_query(result.query, scale);
      result.key = scaled_key(result.key, scale, key_mask);
    }
    result.query = select_tokens(result.query, take_mask(tokens.mask(), query_rows));
    result.key = select_tokens(result.key, key_mask);
    return result;
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto tokens = static_cast<double>(shape.tokens), heads = static_cast<double>(weight_heads(shape));
    const double head_width = model_width(shape) / heads;
    const auto width = static_cast<double>(map_->width(static_cast<std::int64_t>(head_width)));
    const double products = 2 * tokens * model_width(shape) * width;
    const double divisions = normalised_ ? tokens * heads * width : 0;
    return {
        .multiply_accumulates = static_cast<double>(shape.batch) * (products + divisions + map_->cost(shape)),
        .bytes = bytes_moved(shape)};
  }

protected:
  AttentionOutput compute(const Path path, const AttentionInput& input,
                          const KernelParameters& parameters) const override {
    return path == Path::in_blocks || path == Path::at_once ? composed(input, parameters)
                                                            : fused(path, input, parameters);
  }

private:
  Path path_of(const AttentionShape& shape) const {
    if (map_->point_map() && loops_take(shape)) return Path::fused_cpu;
    if (fused_on_gpu(shape)) return shape.gradients ? Path::fused_cuda_training : Path::fused_cuda;
    return at_once(shape) ? Path::at_once : Path::in_blocks;
  }
  bool fused_on_gpu(const AttentionShape& shape) const {
    constexpr std::int64_t most_sequences = 65535; // of one launch
    const auto point = map_->point_map();
    if (shape.device != at::kCUDA || shape.causal || !point) return false;
    if (shape.batch > most_sequences || weight_heads(shape) > most_sequences) return false;
    const HydrascopeCudaPlugin* const plugin = cuda_plugin();
    if (plugin == nullptr) return false;
    const std::int64_t width = shape.heads * shape.head_width / weight_heads(shape);
    const std::int64_t outputs = map_->width(width) / (cpu::has_two_halves(*point) ? 2 : 1);
    const auto takes = shape.gradients ? plugin->linear_gradients_take : plugin->linear_takes;
    return takes(*point, normalised_, shape.dtype, width, outputs);
  }

  AttentionOutput fused(const Path path, const AttentionInput& input,
                        const KernelParameters& parameters) const {
    const AttentionShape shape = shape_of(input);
    const at::Tensor mask = real_mask(input);
    const auto before = [&](const Side side) {
      const FeatureContext context{
          .parameters = parameters, .mask = mask, .rows = {}, .tokens = shape.tokens};
      return map_->loop_projection(side, shape.heads, shape.head_width, context);
    };
    AttentionInput own = input;
    for (at::Tensor* x : {&own.q, &own.k, &own.v}) *x = resplit(*x, weight_heads(shape));
    const LoopProjection query = before(Side::query), key = before(Side::key);
    const cpu::PointMap map = *map_->point_map();
    AttentionOutput output =
        path == Path::fused_cuda_training
            ? linear_with_gradients(*cuda_plugin(), own, mask, map, query, key, normalised_)
        : path == Path::fused_cuda ? cuda_plugin()->linear(own, mask, map, query, key, normalised_)
                                   : linear_on_cpu(own, mask, map, query, key, normalised_);
    output.out = resplit(output.out, shape.heads);
    return output;
  }

  AttentionOutput composed(const AttentionInput& input, const KernelParameters& parameters) const {
    const FeatureBlocks tokens = blocks(input, parameters);
    if (input.causal) {
      const CausalSums sums = causal(tokens);
      return finished(input, tokens, {0, input.q.size(2)}, sums.numerator, sums.denominator);
    }
    const KeySums sums = sums_over_keys(tokens, map_->logarithmic());
    const auto block_output = [&](const TokenBlock& block) {
      const at::Tensor query = scaled(tokens.query(block), sums);
      return finished(input, tokens, block, at::matmul(query, sums.values),
                      normalised_ ? at::matmul(query, sums.ones) : at::Tensor());
    };
    if (tokens.all().size() == 1) return block_output(tokens.all().front());
    AttentionOutput output{.out = at::empty_like(input.q)};
    for (const TokenBlock& block : tokens.all()) {
      const AttentionOutput part = block_output(block);
      output.out.slice(2, block.first, block.last).copy_(part.out);
      output.zero_denominators += part.zero_denominators;
    }
    return output;
  }

  FeatureBlocks blocks(const AttentionInput& input, const KernelParameters& parameters) const {
    return {input, parameters, *map_, weight_heads(shape_of(input))};
  }

  at::Tensor scaled(const at::Tensor& query, const KeySums& sums) const {
    return map_->logarithmic() ? scaled_query(query, sums.scale) : query;
  }

  // A block's rows of the output out of numerator (B,h,R,d) and denominator (B,h,R,1), undefined: none.
  static AttentionOutput finished(const AttentionInput& input, const FeatureBlocks& tokens,
                                  const TokenBlock& block, const at::Tensor& numerator,
                                  const at::Tensor& denominator) {
    const at::Tensor mask = tokens.mask(block);
    AttentionOutput output{.out = numerator};
    if (denominator.defined()) {
      output.out = quotient(numerator, denominator);
      at::Tensor zero = (denominator == 0).squeeze(-1);
      if (mask.defined()) zero = zero.logical_and(mask.unsqueeze(1));
      output.zero_denominators = zero.sum().item<std::int64_t>();
    }
    output.out = select_tokens(resplit(output.out, input.q.size(1)), mask).to(input.q.scalar_type());
    return output;
  }

  // φ(q)·φ(k)ᵀ of the rows asked for, in one scale per row: (B,h,R,N).
  at::Tensor all_products(const FeatureBlocks& tokens, const at::Tensor& rows) const {
    std::vector<at::Tensor> parts;
    if (map_->products_are_cheaper()) {
      const at::Tensor query = tokens.query_tokens(rows);
      for (const TokenBlock& block : tokens.all()) {
        const at::Tensor products = map_->products(query, tokens.key_tokens(block)),
                         mask = tokens.mask(block);
        parts.push_back(mask.defined() ? products * mask.unsqueeze(1).unsqueeze(1) : products);
      }
      return at::cat(parts, -1);
    }
    at::Tensor query = tokens.query_rows(rows), scale;
    if (map_->logarithmic()) {
      scale = scale_of_keys(tokens);
      query = scaled_query(query, scale);
    }
    for (const TokenBlock& block : tokens.all()) {
      const at::Tensor mask = tokens.mask(block), features = tokens.key(block);
      const at::Tensor key =
          scale.defined() ? scaled_key(features, scale, mask) : select_tokens(features, mask);
      parts.push_back(at::matmul(query, key.transpose(2, 3)));
    }
    return parts.size() == 1 ? parts.front() : at::cat(parts, -1);
  }

  CausalSums causal(const FeatureBlocks& tokens) const {
    const TokenBlock& block = tokens.all().front();
    const at::Tensor query = tokens.query(block), key = tokens.key(block), value = tokens.value(block);
    CausalSums sums = map_->logarithmic() ? causal_sums_of_logarithms(query, key, value, tokens.mask())
                                          : causal_sums(query, select_tokens(key, tokens.mask()), value);
    if (!normalised_) sums.denominator = at::Tensor();
    return sums;
  }

  at::Tensor causal_products(const FeatureBlocks& tokens, const at::Tensor& rows, std::int64_t count) const {
    const TokenBlock& block = tokens.all().front();
    const at::Tensor query = tokens.query_rows(rows), key = tokens.key(block);
    const at::Tensor indices = rows_or_all(rows, count, key);
    if (map_->logarithmic()) return causal_products_of_logarithms(query, key, indices, tokens.mask());
    const at::Tensor products = at::matmul(query, select_tokens(key, tokens.mask()).transpose(2, 3));
    const at::Tensor keys = at::arange(count, indices.options());
    return at::where(keys <= indices.unsqueeze(1), products, at::Scalar(0));
  }

  std::unique_ptr<FeatureMap> map_;
  bool normalised_;
  std::optional<std::int64_t> heads_;
};

RegistryEntry linear_entry(KernelInfo info, MakeFeatureMap make_map, bool normalised) {
  info.devices = {"cpu", "cuda"};
  return {std::move(info), {}, [make = std::move(make_map), normalised](const KernelSpec& spec) {
            return std::make_unique<LinearAttention>(spec, make(spec), normalised);
          }};
}

} // namespace

RegistryEntry normalised_linear(KernelInfo info, MakeFeatureMap make_map) {
  info.family = "normalised linear";
  info.complexity = "O(N D d′)";
  info.normalised = true;
  info.weights_positive = true;
  return linear_entry(std::move(info), std::move(make_map), true);
}

RegistryEntry unnormalised_linear(KernelInfo info, MakeFeatureMap make_map) {
  info.family = "unnormalised linear";
  info.complexity = "O(N D²/H)";
  info.parameters.insert(info.parameters.begin(), heads_info());
  return linear_entry(std::move(info), std::move(make_map), false);
}

} // namespace hydrascope
