#include "engine/attention/linear/linear_decoding.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "engine/attention/interface/loop_input.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/feature_sums.h"
#include "engine/attention/linear/linear_cpu.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

class LinearState : public DecodingState {
protected:
  LinearState(const LinearDecoding& kernel, const AttentionShape& shape, KernelParameters parameters)
      : DecodingState(shape), kernel_(kernel), parameters_(std::move(parameters)) {}
  LinearState(const LinearState&) = default;

  std::int64_t heads() const { return kernel_.heads; }
  std::int64_t width() const { return shape().heads * shape().head_width / heads(); }
  // H_k: the heads whose sums are kept.
  std::int64_t sum_heads() const { return grouped() ? key_heads() : heads(); }
  const FeatureMap& map() const { return kernel_.map; }
  bool normalised() const { return kernel_.normalised; }

  // The next tokens split into the kernel's heads: q (B,h,R,D/h), k and v (B,H_k,R,D/h).
  AttentionInput split(const AttentionInput& next) const {
    require_room(next.q.size(2));
    if (grouped()) return next;
    AttentionInput own = next;
    own.q = resplit(next.q, heads());
    own.k = resplit(for_each_head(next.k, shape().heads), heads());
    own.v = resplit(for_each_head(next.v, shape().heads), heads());
    return own;
  }
  // What φ of the next tokens [first, last) may depend on.
  FeatureContext context(const at::Tensor& like, const std::int64_t first, const std::int64_t last) const {
    return {.parameters = parameters_,
            .heads = heads_of(shape()),
            .mask = {},
            .rows = at::arange(tokens() + first, tokens() + last, like.options().dtype(at::kLong)),
            .tokens = tokens() + last,
            .device = like.device()};
  }

private:
  bool grouped() const { return heads() == shape().heads && !map().mixes_heads(); }
  void require_room(const std::int64_t next) const {
    AttentionShape grown = shape();
    grown.tokens = tokens() + next;
    if (const std::string reason = map().refusal(grown); !reason.empty())
      throw UsageError(kernel_.spec.text(), reason, "end the sequence there or change the parameter");
  }

  LinearDecoding kernel_;
  KernelParameters parameters_;
};

class ComposedLinearState final : public LinearState {
public:
  ComposedLinearState(const LinearDecoding& kernel, const AttentionShape& shape, KernelParameters parameters)
      : LinearState(kernel, shape, std::move(parameters)) {}

  std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const at::Tensor* x : {&state_.sums, &state_.scale})
      if (x->defined()) sum += static_cast<std::int64_t>(x->nbytes());
    return sum;
  }
  // The sums are replaced, never written in place: copies may share them.
  std::unique_ptr<DecodingState> clone() const override {
    return std::make_unique<ComposedLinearState>(*this);
  }

protected:
  at::Tensor outputs(const AttentionInput& next) override {
    constexpr std::int64_t tokens_at_once = 1024; // the features of so many are stored
    const AttentionInput own = split(next);
    const at::ScalarType type = compute_type(own.q.scalar_type());
    std::vector<at::Tensor> parts;
    for (std::int64_t first = 0; first < own.q.size(2); first += tokens_at_once) {
      const std::int64_t last = std::min(own.q.size(2), first + tokens_at_once);
      const auto cut = [&](const at::Tensor& x) { return x.slice(2, first, last).to(type); };
      const FeatureContext where = context(own.q, first, last);
      const at::Tensor query = map().features(cut(own.q), Side::query, where),
                       key = map().features(cut(own.k), Side::key, where), value = cut(own.v);
      const CausalSums sums = map().logarithmic() ? causal_sums_of_logarithms(query, key, value, {}, &state_)
                                                  : causal_sums(query, key, value, &state_);
      parts.push_back(normalised() ? quotient(sums.numerator, sums.denominator) : sums.numerator);
    }
    const at::Tensor out = parts.size() == 1 ? parts.front() : at::cat(parts, 2);
    return resplit(out, shape().heads).to(next.q.scalar_type());
  }
  DecodingTensors kept() const override {
    DecodingTensors all;
    if (state_.sums.defined()) all["sums"] = state_.sums;
    if (state_.scale.defined()) all["scale"] = state_.scale;
    return all;
  }
  void restore(const DecodingTensors& saved) override {
    if (tokens() == 0) return;
    const auto options = at::TensorOptions(at::Device(shape().device, shape().device_index))
                             .dtype(compute_type(shape().dtype));
    const auto found = saved.find("sums");
    // Not width() of the map: symmetric maps keep fewer features.
    const std::int64_t features =
        found == saved.end() || found->second.dim() != 4 ? 0 : found->second.size(2);
    state_.sums = saved_tensor(saved, "sums", {shape().batch, sum_heads(), features, width() + 1}, options);
    if (map().logarithmic())
      state_.scale = saved_tensor(saved, "scale", {shape().batch, sum_heads(), 1, features}, options);
  }

private:
  CausalState state_;
};

class FusedLinearState final : public LinearState {
public:
  FusedLinearState(const LinearDecoding& kernel, const AttentionShape& shape, KernelParameters parameters)
      : LinearState(kernel, shape, std::move(parameters)),
        sums_(static_cast<std::size_t>(shape.batch * sum_heads()),
              cpu::KeySums(maps(at::empty({0}), 0, 1)->key.of(0, 0), width())) {}

  std::int64_t bytes() const override { return bytes_of(sums_); }
  std::unique_ptr<DecodingState> clone() const override { return std::make_unique<FusedLinearState>(*this); }

protected:
  at::Tensor outputs(const AttentionInput& next) override {
    const AttentionInput own = split(next);
    const std::shared_ptr<const Maps> both = maps(own.q, 0, own.q.size(2));
    return resplit(causal_linear_on_cpu(own, {}, both->query, both->key, sums_).out, shape().heads);
  }
  DecodingTensors kept() const override { return tensors_of(sums_); }
  void restore(const DecodingTensors& saved) override { restore_sums(saved, sums_); }

private:
  struct Maps {
    HeadMaps query, key;
  };

  // The projections of the next tokens [first, last); those that no token's position changes are made once.
  std::shared_ptr<const Maps> maps(const at::Tensor& like, const std::int64_t first,
                                   const std::int64_t last) {
    if (maps_) return maps_;
    const FeatureContext where = context(like, first, last);
    const LoopProjection query = map().loop_projection(Side::query, where),
                         key = map().loop_projection(Side::key, where);
    const cpu::PointMap point = *map().point_map();
    auto made = std::make_shared<const Maps>(HeadMaps(point, query, width(), normalised()),
                                             HeadMaps(point, key, width(), normalised()));
    if (!query.token_weights.defined()) maps_ = made;
    return made;
  }

  std::shared_ptr<const Maps> maps_;
  std::vector<cpu::KeySums> sums_;
};

} // namespace

std::unique_ptr<DecodingState> make_linear_decoding(const LinearDecoding& kernel, const AttentionShape& shape,
                                                    const KernelParameters& parameters) {
  if (kernel.map.point_map() && loops_take(shape))
    return std::make_unique<FusedLinearState>(kernel, shape, parameters);
  return std::make_unique<ComposedLinearState>(kernel, shape, parameters);
}

} // namespace hydrascope
