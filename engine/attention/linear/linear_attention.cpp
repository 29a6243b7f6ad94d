// Linear attention with any feature map, block by block of tokens, so that the features of all tokens are
// never stored at once. Normalised (Hedgehog paper, Eq. 2): out_i = φ(q_i)·Σ_j φ(k_j) v_jᵀ / φ(q_i)·Σ_j
// φ(k_j); without a normaliser (Hydra paper, Eq. 7): the numerator alone.
#include <cmath>
#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>

#include "engine/attention/interface/cuda_plugin.h"
#include "engine/attention/interface/device.h"
#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/loop_input.h"
#include "engine/attention/interface/parameters.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/feature_map.h"
#include "engine/attention/linear/feature_sums.h"
#include "engine/attention/linear/linear_cpu.h"
#include "engine/attention/linear/linear_decoding.h"

namespace hydrascope {
namespace {

// Whether all tokens are processed at once: a graph keeps all features anyway, and nothing it keeps may be
// overwritten.
bool at_once(const AttentionShape& shape) { return shape.gradients || shape.causal; }

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

  KernelParameters initial_parameters(const HeadShape& shape, int layer) const override {
    return map_->initial_parameters(shape, layer);
  }
  std::vector<std::string> fixed_parameters() const override { return map_->fixed_parameters(); }
  std::optional<LeadingMaps> leading_maps(const HeadShape& shape,
                                          const KernelParameters& parameters) const override {
    return map_->leading_maps(shape, parameters);
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
    // One query needs one row of weights, which the default computes in O(N); all queries need none.
    if (query || input.causal) return Kernel::contributions(input, parameters, query, g);
    const at::NoGradGuard no_gradients;
    require_support(input);
    const FeatureBlocks tokens = blocks(input, parameters);
    const KeySums key_sums = sums_over_keys(tokens, map_->logarithmic());
    const KeySums sums = for_queries(key_sums, tokens.heads());
    at::Tensor gathered; // Σ_c φ(q_c) g_cᵀ, each row over its denominator: (B,h,d′,d)
    for (const TokenBlock& block : tokens.all()) {
      at::Tensor shares = scaled(tokens.query(block), sums);
      if (normalised_) shares = quotient(shares, at::matmul(shares, sums.totals));
      const at::Tensor part = at::matmul(shares.transpose(2, 3), tokens.tokens(g, block));
      gathered = gathered.defined() ? gathered + part : part;
    }
    // What the heads of a group gather goes to the keys that they share.
    const std::int64_t group = tokens.heads() / tokens.key_heads();
    gathered = gathered.unflatten(1, {tokens.key_heads(), group}).sum(2);
    std::vector<at::Tensor> parts;
    for (const TokenBlock& block : tokens.all()) {
      const at::Tensor mask = tokens.mask(block);
      const at::Tensor key = map_->logarithmic() ? scaled_key(tokens.key(block), key_sums.scale, mask)
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
      const at::Tensor scale = for_each_head(scale_of_keys(tokens), tokens.heads());
      result.query = scaled_query(result.query, scale);
      result.key = scaled_key(result.key, scale, key_mask);
    }
    result.query = select_tokens(result.query, take_mask(tokens.mask(), query_rows));
    result.key = select_tokens(result.key, key_mask);
    return result;
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto tokens = static_cast<double>(shape.tokens), heads = static_cast<double>(weight_heads(shape));
    const std::int64_t head_width = shape.heads * shape.head_width / weight_heads(shape);
    const bool grouped = weight_heads(shape) == shape.heads && !map_->mixes_heads();
    const auto key_heads = grouped ? static_cast<double>(heads_of(shape).of_keys()) : heads;
    const double products = tokens * (heads + key_heads) * static_cast<double>(head_width);
    const double of_feature = products + (normalised_ ? tokens * heads : 0);
    const auto features = static_cast<double>(map_->width(head_width));
    const auto repeated = static_cast<double>(map_->repeated_features(head_width));
    const auto batch = static_cast<double>(shape.batch);
    return {.multiply_accumulates = batch * (of_feature * features + map_->cost(shape)),
            .bytes = bytes_moved(shape),
            .saved = batch * of_feature * repeated};
  }

protected:
  AttentionOutput compute(const Path path, const AttentionInput& input,
                          const KernelParameters& parameters) const override {
    if (path != Path::in_blocks && path != Path::at_once) return fused(path, input, parameters);
    const auto no_autocast = without_float16_sums(input.q.scalar_type());
    return composed({input, parameters, *map_, weight_heads(shape_of(input)), path == Path::at_once}, input);
  }

  std::string growth_refusal(const AttentionShape&) const override { return map_->growth_refusal(); }
  std::unique_ptr<DecodingState> make_decoding(const AttentionShape& shape,
                                               const KernelParameters& parameters) const override {
    return make_linear_decoding({spec(), *map_, normalised_, weight_heads(shape)}, shape, parameters);
  }

private:
  Path path_of(const AttentionShape& shape) const {
    if (map_->point_map() && loops_take(shape)) return Path::fused_cpu;
    if (fused_on_gpu(shape)) return shape.gradients ? Path::fused_cuda_training : Path::fused_cuda;
    return at_once(shape) ? Path::at_once : Path::in_blocks;
  }
  bool fused_on_gpu(const AttentionShape& shape) const {
    const auto point = map_->point_map();
    if (!point) return false;
    if (shape.batch > max_cuda_sequences || weight_heads(shape) > max_cuda_sequences) return false;
    const HydrascopeCudaPlugin* const plugin = fused_kernels(shape.device);
    if (plugin == nullptr || !plugin->runs_on(shape.device_index)) return false;
    const std::int64_t width = shape.heads * shape.head_width / weight_heads(shape);
    const std::int64_t outputs = map_->width(width) / (cpu::has_two_halves(*point) ? 2 : 1);
    const auto takes = shape.gradients ? plugin->linear_gradients_take : plugin->linear_takes;
    return takes(*point, normalised_, shape.dtype, width, outputs, shape.causal, shape.device_index);
  }

  AttentionOutput fused(const Path path, const AttentionInput& input,
                        const KernelParameters& parameters) const {
    const AttentionShape shape = shape_of(input);
    const at::Tensor mask = real_mask(input);
    const FeatureContext context{.parameters = parameters,
                                 .heads = heads_of(shape),
                                 .mask = mask,
                                 .rows = {},
                                 .tokens = shape.tokens,
                                 .device = input.q.device()};
    const LoopProjection query = map_->loop_projection(Side::query, context);
    LoopProjection key = map_->loop_projection(Side::key, context);
    const std::int64_t heads = weight_heads(shape), key_heads = key_heads_of(input, *map_, heads);
    AttentionInput own = input;
    for (at::Tensor* x : {&own.q, &own.k, &own.v}) *x = resplit(*x, heads);
    AttentionOutput output = path == Path::fused_cpu
                                 ? on_cpu(std::move(own), mask, query, key, key_heads)
                                 : on_gpu(path, own, mask, query, std::move(key), heads / key_heads);
    output.out = resplit(output.out, shape.heads);
    return output;
  }

  AttentionOutput on_cpu(AttentionInput input, const at::Tensor& mask, const LoopProjection& query,
                         const LoopProjection& key, const std::int64_t key_heads) const {
    const cpu::PointMap map = *map_->point_map();
    input.k = one_of_each_group(input.k, key_heads);
    input.v = one_of_each_group(input.v, key_heads);
    if (!input.causal) return linear_on_cpu(input, mask, map, query, key, normalised_);
    const std::int64_t width = input.q.size(3);
    std::vector<cpu::KeySums> sums;
    return causal_linear_on_cpu(input, mask, {map, query, width, normalised_}, {map, key, width, normalised_},
                                sums);
  }

  // The plug-in takes every head's keys with a map of their own; `group` heads share one.
  AttentionOutput on_gpu(const Path path, const AttentionInput& input, const at::Tensor& mask,
                         const LoopProjection& query, LoopProjection key, const std::int64_t group) const {
    const cpu::PointMap map = *map_->point_map();
    if (group > 1) {
      if (key.weight.defined() && key.weight.size(0) > 1) // one map for all heads stays one
        key.weight = key.weight.repeat_interleave(group, 0);
      if (key.bias.defined()) key.bias = key.bias.repeat_interleave(group, 0);
    }
    const HydrascopeCudaPlugin& plugin = *fused_kernels(input.q.device().type());
    if (path == Path::fused_cuda_training)
      return linear_with_gradients(plugin, input, mask, map, query, key, normalised_);
    return plugin.linear(input, mask, map, query, key, normalised_);
  }

  AttentionOutput composed(const FeatureBlocks& tokens, const AttentionInput& input) const {
    if (input.causal) {
      const CausalSums sums = causal(tokens);
      return finished(input, tokens, {0, input.q.size(2)}, sums.numerator, sums.denominator);
    }
    const KeySums sums = for_queries(sums_over_keys(tokens, map_->logarithmic()), tokens.heads());
    const auto block_output = [&](const TokenBlock& block) {
      const at::Tensor query = scaled(tokens.query(block), sums);
      return finished(input, tokens, block, at::matmul(query, sums.values),
                      normalised_ ? at::matmul(query, sums.totals) : at::Tensor());
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

  // For weights and contributions, which are composed whatever path run() takes.
  FeatureBlocks blocks(const AttentionInput& input, const KernelParameters& parameters) const {
    const AttentionShape shape = shape_of(input, parameters);
    return {input, parameters, *map_, weight_heads(shape), at_once(shape)};
  }

  // The sums that each query's head reads.
  static KeySums for_queries(const KeySums& sums, const std::int64_t heads) {
    return {for_each_head(sums.values, heads), for_each_head(sums.totals, heads),
            sums.scale.defined() ? for_each_head(sums.scale, heads) : sums.scale};
  }

  at::Tensor scaled(const at::Tensor& query, const KeySums& sums) const {
    return map_->logarithmic() ? scaled_query(query, sums.scale) : query;
  }

  // A block's rows of the output from numerator (B,h,R,d) and denominator (B,h,R,1); undefined: not
  // normalised.
  static AttentionOutput finished(const AttentionInput& input, const FeatureBlocks& tokens,
                                  const TokenBlock& block, const at::Tensor& numerator,
                                  const at::Tensor& denominator) {
    const at::Tensor mask = tokens.mask(block);
    AttentionOutput output{.out = numerator};
    if (denominator.defined()) {
      output.out = quotient(numerator, denominator);
      at::Tensor zero = (denominator == 0).squeeze(-1);
      if (mask.defined()) zero = zero.logical_and(mask.unsqueeze(1));
      output.zero_denominators = RowCount(zero.sum());
    }
    output.out = select_tokens(resplit(output.out, input.q.size(1)), mask).to(input.q.scalar_type());
    return output;
  }

  // φ(q)·φ(k)ᵀ of these query rows, up to one factor per row: (B,h,R,N).
  at::Tensor all_products(const FeatureBlocks& tokens, const at::Tensor& rows) const {
    std::vector<at::Tensor> parts;
    if (map_->products_are_cheaper()) {
      const at::Tensor query = tokens.query_tokens(rows);
      for (const TokenBlock& block : tokens.all()) {
        const at::Tensor keys = for_each_head(tokens.key_tokens(block), tokens.heads());
        const at::Tensor products = map_->products(query, keys), mask = tokens.mask(block);
        parts.push_back(mask.defined() ? products * mask.unsqueeze(1).unsqueeze(1) : products);
      }
      return at::cat(parts, -1);
    }
    at::Tensor query = tokens.query_rows(rows), scale;
    if (map_->logarithmic()) {
      scale = scale_of_keys(tokens);
      query = scaled_query(query, for_each_head(scale, tokens.heads()));
    }
    for (const TokenBlock& block : tokens.all()) {
      const at::Tensor mask = tokens.mask(block), features = tokens.key(block);
      const at::Tensor key =
          scale.defined() ? scaled_key(features, scale, mask) : select_tokens(features, mask);
      parts.push_back(at::matmul(query, for_each_head(key, tokens.heads()).transpose(2, 3)));
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
    const at::Tensor query = tokens.query_rows(rows), key = for_each_head(tokens.key(block), tokens.heads());
    const at::Tensor indices = rows_or_all(rows, count, key);
    if (map_->logarithmic())
      return causal_products_of_logarithms(query, key, indices, tokens.mask()).products;
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
            return make_linear(spec, make(spec), normalised);
          }};
}

} // namespace

std::unique_ptr<Kernel> make_linear(const KernelSpec& spec, std::unique_ptr<FeatureMap> map,
                                    const bool normalised) {
  return std::make_unique<LinearAttention>(spec, std::move(map), normalised);
}

RegistryEntry normalised_linear(KernelInfo info, MakeFeatureMap make_map) {
  info.family = info.trainable ? KernelFamily::trained : KernelFamily::normalised_linear;
  info.complexity = "O(N D d′)";
  info.normalised = true;
  info.weights_positive = true;
  return linear_entry(std::move(info), std::move(make_map), true);
}

RegistryEntry unnormalised_linear(KernelInfo info, MakeFeatureMap make_map) {
  info.family = KernelFamily::hydra;
  info.complexity = "O(N D²/H)";
  info.parameters.insert(info.parameters.begin(), heads_info());
  return linear_entry(std::move(info), std::move(make_map), false);
}

} // namespace hydrascope
