#include "engine/attention/linear/hybrid/far_sums.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include "engine/attention/interface/loop_input.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/linear_cpu.h"

namespace hydrascope {
namespace {

FeatureContext far_context(const AttentionShape& shape, const KernelParameters& parameters) {
  return {.parameters = parameters,
          .heads = heads_of(shape),
          .mask = {},
          .rows = {},
          .tokens = shape.tokens,
          .device = at::Device(shape.device, shape.device_index)};
}

class ComposedFarSums final : public FarSums {
public:
  ComposedFarSums(const FeatureMap& map, const AttentionShape& shape, KernelParameters parameters)
      : map_(map), shape_(shape), parameters_(std::move(parameters)) {}

  WindowSums extend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& ranges) override {
    const FeatureContext where = far_context(shape_, parameters_);
    const at::Tensor of_queries = map_.features(query, Side::query, where),
                     of_keys = map_.features(key, Side::key, where);
    at::Tensor present; // (B or 1,R)
    if (ranges.defined()) {
      const at::Tensor place = at::arange(key.size(2), ranges.options());
      present = (place >= ranges.slice(1, 0, 1)).logical_and(place < ranges.slice(1, 1, 2));
    }
    return window_sums(map_.logarithmic()
                           ? causal_sums_of_logarithms(of_queries, of_keys, value, present, &state_)
                           : causal_sums(of_queries, select_tokens(of_keys, present), value, &state_));
  }

  std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const at::Tensor* x : {&state_.sums, &state_.scale})
      if (x->defined()) sum += static_cast<std::int64_t>(x->nbytes());
    return sum;
  }
  // The sums are replaced, never written in place: copies may share them.
  std::unique_ptr<FarSums> clone() const override { return std::make_unique<ComposedFarSums>(*this); }
  DecodingTensors kept() const override {
    DecodingTensors all{{"sums", state_.sums}};
    if (state_.scale.defined()) all["scale"] = state_.scale;
    return all;
  }
  void restore(const DecodingTensors& saved) override {
    const auto options =
        at::TensorOptions(at::Device(shape_.device, shape_.device_index)).dtype(compute_type(shape_.dtype));
    const std::int64_t key_heads = heads_of(shape_).of_keys();
    const auto found = saved.find("sums");
    // Not width() of the map: symmetric maps keep fewer features.
    const std::int64_t features =
        found == saved.end() || found->second.dim() != 4 ? 0 : found->second.size(2);
    state_.sums =
        saved_tensor(saved, "sums", {shape_.batch, key_heads, features, shape_.head_width + 1}, options);
    if (map_.logarithmic())
      state_.scale = saved_tensor(saved, "scale", {shape_.batch, key_heads, 1, features}, options);
  }

private:
  const FeatureMap& map_;
  AttentionShape shape_;
  KernelParameters parameters_;
  CausalState state_;
};

class FusedFarSums final : public FarSums {
public:
  FusedFarSums(const FeatureMap& map, const AttentionShape& shape, const KernelParameters& parameters) {
    const FeatureContext where = far_context(shape, parameters);
    const auto maps = [&](const Side side) {
      return HeadMaps(*map.point_map(), map.loop_projection(side, where), shape.head_width, true);
    };
    maps_ = std::make_shared<const std::pair<HeadMaps, HeadMaps>>(maps(Side::query), maps(Side::key));
    sums_.assign(static_cast<std::size_t>(shape.batch * heads_of(shape).of_keys()),
                 cpu::KeySums(maps_->second.of(0, 0), shape.head_width));
  }

  WindowSums extend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& ranges) override {
    const std::int64_t rows = query.size(2);
    const Places places = places_of(ranges, rows);
    const std::int64_t without = places.first;
    if (without == rows) // no sequence has a key
      return {at::zeros_like(query), at::zeros_like(query.slice(3, 0, 1)),
              at::full_like(query.slice(3, 0, 1), -INFINITY)};
    AttentionInput own;
    own.causal = true;
    own.q = query.slice(2, without);
    own.k = key.slice(2, without);
    own.v = value.slice(2, without);
    const LinearSums sums =
        causal_linear_sums_on_cpu(own, places.queries, places.key_ends, maps_->first, maps_->second, sums_);
    if (without == 0) return {sums.numerator, sums.denominator, sums.reference};
    const auto later = [&](const at::Tensor& x, const double absent) {
      return at::constant_pad_nd(x, {0, 0, without, 0}, absent);
    };
    return {later(sums.numerator, 0), later(sums.denominator, 0), later(sums.reference, -INFINITY)};
  }

  std::int64_t bytes() const override { return bytes_of(sums_); }
  std::unique_ptr<FarSums> clone() const override { return std::make_unique<FusedFarSums>(*this); }
  DecodingTensors kept() const override { return tensors_of(sums_); }
  void restore(const DecodingTensors& saved) override { restore_sums(saved, sums_); }

private:
  // The places from the first key of any sequence on.
  struct Places {
    std::int64_t first = 0;
    std::vector<std::int64_t> key_ends; // of each sequence or of all
    at::Tensor queries;                 // (B,R): those behind the first key of their sequence; undefined: all
  };
  static Places places_of(const at::Tensor& ranges, const std::int64_t rows) {
    if (!ranges.defined()) return {.first = 0, .key_ends = {rows}, .queries = {}};
    const auto of = ranges.accessor<std::int64_t, 2>();
    const auto first_key = [&](const std::int64_t i) { return of[i][0] < of[i][1] ? of[i][0] : rows; };
    Places places{.first = rows, .key_ends = {}, .queries = {}};
    for (std::int64_t i = 0; i < of.size(0); ++i) places.first = std::min(places.first, first_key(i));
    const at::Tensor place = at::arange(places.first, rows, ranges.options());
    std::vector<at::Tensor> masks;
    for (std::int64_t i = 0; i < of.size(0); ++i) {
      places.key_ends.push_back(std::max<std::int64_t>(0, of[i][1] - places.first));
      masks.push_back((place >= first_key(i)).logical_and(place < of[i][2]));
    }
    if (masks.size() > 1 || of[0][2] < rows) places.queries = at::stack(masks);
    return places;
  }

  std::shared_ptr<const std::pair<HeadMaps, HeadMaps>> maps_; // of queries and keys
  std::vector<cpu::KeySums> sums_;
};

} // namespace

bool far_sums_are_fused(const FeatureMap& map, const AttentionShape& shape) {
  return map.point_map() && loops_take(shape);
}

std::unique_ptr<FarSums> make_far_sums(const FeatureMap& map, const AttentionShape& shape,
                                       const KernelParameters& parameters) {
  if (far_sums_are_fused(map, shape)) return std::make_unique<FusedFarSums>(map, shape, parameters);
  return std::make_unique<ComposedFarSums>(map, shape, parameters);
}

} // namespace hydrascope
