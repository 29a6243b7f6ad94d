// The kernel `phi`: linear attention, Hydra attention or explicit weights by a source of the user's own.
#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>

#include "engine/attention/hydra/hydra.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/feature_map.h"
#include "engine/attention/linear/feature_sums.h"
#include "engine/attention/own/map_script.h"
#include "engine/attention/own/map_source.h"
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
  KernelParameters initial_parameters(const std::int64_t heads, const std::int64_t head_width,
                                      const int layer) const override {
    return script_->initial_parameters(heads, head_width, layer);
  }
  std::vector<std::string> fixed_parameters() const override { return script_->fixed_parameters(); }

  at::Tensor features(const at::Tensor& x, const Side side, const FeatureContext& context) const override {
    return script_->map(side, x, positions(x, context), context.parameters);
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

  KernelParameters initial_parameters(const std::int64_t heads, const std::int64_t head_width,
                                      const int layer) const override {
    return script_->initial_parameters(heads, head_width, layer);
  }
  std::vector<std::string> fixed_parameters() const override { return script_->fixed_parameters(); }

  at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                     const at::Tensor& rows) const override {
    require_support(input);
    return rows_of_weights(real_tokens(input), input.causal, parameters, rows).weights;
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
      const Rows part = rows_of_weights(real, input.causal, parameters, rows);
      parts.push_back(at::matmul(part.weights, real.v));
      output.zero_denominators += RowCount(part.zero_sums);
    }
    output.out = (parts.size() == 1 ? parts.front() : at::cat(parts, 2)).to(input.q.scalar_type());
    return output;
  }

private:
  struct Rows {
    at::Tensor weights;   // (B,H,R,N)
    at::Tensor zero_sums; // one int64 number
  };

  Rows rows_of_weights(const RealTokens& real, const bool causal, const KernelParameters& parameters,
                       const at::Tensor& rows) const {
    const at::Tensor q = take_tokens(real.q, rows), mask = take_mask(real.mask, rows);
    const MapSource& source = script_->source();
    at::Tensor w = script_->score(q, real.k, parameters);
    const at::Tensor allowed =
        allowed_keys(real.mask, causal, rows_or_all(rows, real.q.size(2), q), real.q.size(2));
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
                        return script->map(side, x.unsqueeze(1), {}, {}).squeeze(1);
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
