// The kernel `phi`: linear attention, Hydra attention or explicit weights by a source of the user's own.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>

#include "engine/attention/hydra/hydra.h"
#include "engine/attention/interface/decoding.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/feature_map.h"
#include "engine/attention/linear/feature_sums.h"
#include "engine/attention/own/map_script.h"
#include "engine/attention/own/map_source.h"
#include "engine/attention/softmax/key_value_cache.h"
#include "engine/attention/softmax/softmax_family.h"

namespace hydrascope {
namespace {

class OwnMap final : public FeatureMap {
public:
  explicit OwnMap(std::shared_ptr<const MapScript> script) : script_(std::move(script)) {}

  bool logarithmic() const override { return script_->source().logarithm; }
  std::int64_t width(const std::int64_t head_width) const override { return script_->width(head_width); }
  std::string refusal(const AttentionShape& shape) const override {
    return script_->refusal(shape.heads, shape.head_width);
  }
  std::string growth_refusal() const override {
    if (!script_->source().takes("n")) return {};
    return "its map takes n, the number of tokens, which is not known while a sequence grows";
  }
  KernelParameters initial_parameters(const HeadShape& shape, const int layer) const override {
    return script_->initial_parameters(shape, layer);
  }
  std::vector<std::string> fixed_parameters() const override { return script_->fixed_parameters(); }

  at::Tensor features(const at::Tensor& x, const Side side, const FeatureContext& context) const override {
    return script_->map(side, x, positions(x, context), context.parameters, context.heads);
  }

private:
  MapScript::Positions positions(const at::Tensor& x, const FeatureContext& context) const {
    if (!script_->source().positional()) return {};
    if (!context.mask.defined()) {
      const at::Tensor rows = rows_or_all(context.rows, x.size(2), x);
      return {(rows + 1).to(x.scalar_type()).view({1, 1, -1, 1}),
              at::full({1, 1, 1, 1}, context.tokens, x.options())};
    }
    const at::Tensor ranks = at::cumsum(context.mask, 1, x.scalar_type());
    return {take_mask(ranks, context.rows).unsqueeze(1).unsqueeze(-1),
            ranks.slice(1, -1).clamp_min(1).unsqueeze(1).unsqueeze(-1)};
  }

  std::shared_ptr<const MapScript> script_;
};

// Weights that score(q, k) returns, or their logarithms up to one number for each row: those of masked and
// later keys are 0 and, unless `normalised = False`, each row is divided by its sum.
class OwnScore final : public Kernel {
public:
  OwnScore(KernelSpec kernel_spec, std::shared_ptr<const MapScript> script)
      : Kernel(std::move(kernel_spec)), script_(std::move(script)) {}

  Plan plan(const AttentionShape& shape) const override {
    if (std::string reason = script_->refusal(shape.heads, shape.head_width); !reason.empty())
      return {{.ok = false, .reason = std::move(reason)}, {}};
    return {{}, shape.gradients ? Path::at_once : Path::in_blocks};
  }

  KernelParameters initial_parameters(const HeadShape& shape, const int layer) const override {
    return script_->initial_parameters(shape, layer);
  }
  std::vector<std::string> fixed_parameters() const override { return script_->fixed_parameters(); }

  at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                     const at::Tensor& rows) const override {
    require_support(input);
    const RealTokens real = real_tokens(input);
    const at::Tensor all = rows_or_all(rows, real.q.size(2), real.q);
    return rows_of_weights(take_tokens(real.q, rows), real.k, real.mask, input.causal, parameters, all)
        .weights;
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto tokens = static_cast<double>(shape.tokens);
    return {
        .multiply_accumulates = 2 * tokens * tokens * model_width(shape) * static_cast<double>(shape.batch),
        .bytes = bytes_moved(shape)};
  }

protected:
  AttentionOutput compute(const Path path, const AttentionInput& input,
                          const KernelParameters& parameters) const override {
    const RealTokens real = real_tokens(input);
    const std::int64_t tokens = input.q.size(2);
    const std::int64_t step =
        path == Path::at_once ? tokens : tile_rows(input.q.size(0) * input.q.size(1), tokens);
    AttentionOutput output;
    std::vector<at::Tensor> parts;
    for (std::int64_t first = 0; first < tokens; first += step) {
      const at::Tensor rows = at::arange(first, std::min(tokens, first + step),
                                         at::TensorOptions(at::kLong).device(input.q.device()));
      const WeightRows part =
          rows_of_weights(take_tokens(real.q, rows), real.k, real.mask, input.causal, parameters, rows);
      parts.push_back(at::matmul(part.weights, real.v));
      output.zero_denominators += RowCount(part.zero_sums);
    }
    output.out = (parts.size() == 1 ? parts.front() : at::cat(parts, 2)).to(input.q.scalar_type());
    return output;
  }

  std::string growth_refusal(const AttentionShape&) const override { return {}; }
  std::unique_ptr<DecodingState> make_decoding(const AttentionShape& shape,
                                               const KernelParameters& parameters) const override {
    return std::make_unique<State>(*this, shape, parameters);
  }

private:
  struct WeightRows {
    at::Tensor weights;   // (B,H,R,N)
    at::Tensor zero_sums; // one int64 number
  };

  // A cache of keys and values: the scores of all of them are computed for every token.
  class State final : public DecodingState {
  public:
    State(const OwnScore& kernel, const AttentionShape& shape, KernelParameters parameters)
        : DecodingState(shape),
          kernel_(kernel),
          parameters_(std::move(parameters)),
          cache_(shape, key_heads(), shape.head_width, shape.tokens) {}

    std::int64_t bytes() const override { return cache_.bytes(tokens()); }
    std::unique_ptr<DecodingState> clone() const override {
      auto copy = std::make_unique<State>(*this);
      copy->cache_ = cache_.clone();
      return copy;
    }

  protected:
    at::Tensor outputs(const AttentionInput& next) override {
      cache_.write(next.k, next.v, tokens());
      const at::ScalarType type = compute_type(next.q.scalar_type());
      const std::int64_t heads = shape().heads, count = tokens() + next.q.size(2);
      const at::Tensor q = next.q.to(type), k = for_each_head(cache_.keys(0, count), heads).to(type),
                       v = for_each_head(cache_.values(0, count), heads).to(type);
      const std::int64_t step = tile_rows(shape().batch * heads, count);
      std::vector<at::Tensor> parts;
      for (std::int64_t first = 0; first < q.size(2); first += step) {
        const std::int64_t last = std::min(q.size(2), first + step);
        const at::Tensor rows =
            at::arange(tokens() + first, tokens() + last, at::TensorOptions(at::kLong).device(q.device()));
        const WeightRows part =
            kernel_.rows_of_weights(q.slice(2, first, last), k, {}, true, parameters_, rows);
        parts.push_back(at::matmul(part.weights, v));
      }
      return at::cat(parts, 2).to(next.q.scalar_type());
    }
    DecodingTensors kept() const override {
      return {{"keys", cache_.keys(0, tokens()).contiguous()},
              {"values", cache_.values(0, tokens()).contiguous()}};
    }
    void restore(const DecodingTensors& saved) override {
      const std::vector<std::int64_t> sizes{shape().batch, key_heads(), tokens(), shape().head_width};
      const auto options =
          at::TensorOptions(at::Device(shape().device, shape().device_index)).dtype(shape().dtype);
      cache_.write(saved_tensor(saved, "keys", sizes, options), saved_tensor(saved, "values", sizes, options),
                   0);
    }

  private:
    const OwnScore& kernel_;
    KernelParameters parameters_;
    KeyValueCache cache_;
  };

  // q (B,H,R,d): the queries of the tokens `rows` (R); k (B,H,N,d), mask (B,N) or undefined.
  WeightRows rows_of_weights(const at::Tensor& q, const at::Tensor& k, const at::Tensor& key_mask,
                             const bool causal, const KernelParameters& parameters,
                             const at::Tensor& rows) const {
    const at::Tensor mask = take_mask(key_mask, rows);
    const MapSource& source = script_->source();
    at::Tensor w = script_->score(q, k, parameters);
    const at::Tensor allowed = allowed_keys(key_mask, causal, rows, k.size(2));
    if (allowed.defined()) w = w.masked_fill(allowed.logical_not(), source.logarithm ? -INFINITY : 0);
    if (source.logarithm)
      w = (w - w.amax(-1, true).clamp_min(std::numeric_limits<float>::lowest()).detach()).exp();
    at::Tensor zero = at::full({1}, 0, q.options().dtype(at::kLong)).sum();
    if (source.divided_by_sums) {
      const at::Tensor sums = w.sum(-1, true);
      at::Tensor empty = (sums == 0).squeeze(-1);
      if (mask.defined()) empty = empty.logical_and(mask.unsqueeze(1));
      zero = empty.sum();
      w = quotient(w, sums);
    }
    return {select_tokens(w, mask), zero};
  }

  std::shared_ptr<const MapScript> script_;
};

std::unique_ptr<Kernel> make_phi(const KernelSpec& spec) {
  const MapSource& source = source_of(spec);
  const std::shared_ptr<const MapScript> script = MapScript::of(source);
  switch (source.form) {
    case MapSource::Form::score: return std::make_unique<OwnScore>(spec, script);
    case MapSource::Form::hydra: {
      const auto of_side = [&](const Side side) {
        return RowMap{[script, side](const at::Tensor& x) {
                        const at::Tensor row = x.unsqueeze(1);
                        return script->map(side, row, {}, {}, {1, row.size(3)}).squeeze(1);
                      },
                      {}};
      };
      HydraMaps maps;
      maps.query = of_side(Side::query);
      maps.key = of_side(Side::key);
      maps.refusal = [script](const AttentionShape& shape) {
        return script->refusal(shape.heads, shape.head_width);
      };
      return make_hydra(spec, maps);
    }
    case MapSource::Form::normalised:
    case MapSource::Form::unnormalised: break;
  }
  return make_linear(spec, std::make_unique<OwnMap>(script), source.form == MapSource::Form::normalised);
}

} // namespace

RegistryEntry phi_kernel() {
  RegistryEntry entry;
  entry.info = info_of(source_of({.name = "phi", .parameters = {}}));
  entry.make = make_phi;
  entry.info_of = [](const KernelSpec& spec) { return info_of(source_of(spec)); };
  entry.resolve = resolved_map;
  return entry;
}

} // namespace hydrascope
