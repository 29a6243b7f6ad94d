#include "engine/attention/hydra/hydra_decoding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>

#include "engine/attention/hydra/hydra_rows.h"
#include "engine/attention/hydra/token_softmax.h"
#include "engine/attention/interface/loop_input.h"
#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

class HydraState : public DecodingState {
protected:
  HydraState(const HydraMaps& maps, const AttentionShape& shape) : DecodingState(shape), maps_(maps) {}
  HydraState(const HydraState&) = default;

  const HydraMaps& maps() const { return maps_; }
  std::int64_t width() const { return shape().heads * shape().head_width; }
  bool softmax() const { return maps_.over_tokens == OverTokens::softmax; }
  // φ acts on D-wide rows: the key/value heads as often as heads of queries share them.
  AttentionInput widened(const AttentionInput& next) const {
    AttentionInput own = next;
    own.k = for_each_head(next.k, shape().heads);
    own.v = for_each_head(next.v, shape().heads);
    return own;
  }

private:
  const HydraMaps& maps_;
};

class ComposedHydraState final : public HydraState {
public:
  ComposedHydraState(const HydraMaps& maps, const AttentionShape& shape) : HydraState(maps, shape) {}

  std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const at::Tensor* x : {&sum_, &sums_.largest, &sums_.total, &sums_.weighted})
      if (x->defined()) sum += static_cast<std::int64_t>(x->nbytes());
    return sum;
  }
  // The sums are replaced, never written in place: copies may share them.
  std::unique_ptr<DecodingState> clone() const override {
    return std::make_unique<ComposedHydraState>(*this);
  }

protected:
  at::Tensor outputs(const AttentionInput& next) override {
    const AttentionInput own = widened(next);
    const at::ScalarType type = compute_type(own.q.scalar_type());
    const auto rows = [&](const at::Tensor& x) { return to_rows(x).to(type); };
    const at::Tensor source = maps().query_is_layer_input ? own.layer_input.to(type) : rows(own.q);
    const at::Tensor value = rows(own.v), key = mapped_rows(maps().key, rows(own.k), {}, {});
    at::Tensor scale, global;
    if (maps().over_tokens == OverTokens::mean)
      scale = running_mean({}, value.size(1), value.options(), tokens());
    if (softmax()) {
      const CausalTokenSums all = causal_token_sums(key, value, sums_);
      sums_ = all.last();
      global = all.mean();
    } else {
      global = at::cumsum(key * value, 1);
      if (sum_.defined()) global = global + sum_;
      sum_ = global.slice(1, -1).clone(); // not the memory of all rows
    }
    const at::Tensor out = mapped_rows(maps().query, source, {}, scale) * global;
    return to_heads(out, shape().heads).to(maps().layer_norm ? type : shape().dtype);
  }
  DecodingTensors kept() const override {
    DecodingTensors all;
    for (const auto& [name, x] : named())
      if (x->defined()) all[name] = *x;
    return all;
  }
  void restore(const DecodingTensors& saved) override {
    if (tokens() == 0) return;
    const auto options = at::TensorOptions(at::Device(shape().device, shape().device_index))
                             .dtype(compute_type(shape().dtype));
    const auto read = [&](const char* name) {
      return saved_tensor(saved, name, {shape().batch, 1, width()}, options);
    };
    if (softmax())
      sums_ = {read("largest"), read("total"), read("weighted")};
    else
      sum_ = read("sum");
  }

private:
  std::vector<std::pair<const char*, const at::Tensor*>> named() const {
    return {
        {"sum", &sum_}, {"largest", &sums_.largest}, {"total", &sums_.total}, {"weighted", &sums_.weighted}};
  }

  at::Tensor sum_;       // (B,1,D)
  CausalTokenSums sums_; // (B,1,D), with softmax
};

class FusedHydraState final : public HydraState {
public:
  FusedHydraState(const HydraMaps& maps, const AttentionShape& shape)
      : HydraState(maps, shape),
        sums_(static_cast<std::size_t>(shape.batch), cpu::CausalHydraSums(width(), softmax())) {}

  std::int64_t bytes() const override {
    std::size_t floats = 0;
    for (const auto& [name, part] : parts) floats += (sums_.front().*part).size();
    return static_cast<std::int64_t>(sums_.size() * floats * sizeof(float));
  }
  std::unique_ptr<DecodingState> clone() const override { return std::make_unique<FusedHydraState>(*this); }

protected:
  at::Tensor outputs(const AttentionInput& next) override {
    return causal_hydra_on_cpu(maps(), widened(next), {}, sums_);
  }
  DecodingTensors kept() const override {
    DecodingTensors all;
    for (const auto& [name, part] : parts) {
      const std::size_t length = (sums_.front().*part).size();
      if (length == 0) continue;
      at::Tensor joined =
          at::empty({static_cast<std::int64_t>(sums_.size()), static_cast<std::int64_t>(length)});
      float* to = joined.data_ptr<float>();
      for (const cpu::CausalHydraSums& one : sums_) to = std::ranges::copy(one.*part, to).out;
      all[name] = joined;
    }
    return all;
  }
  void restore(const DecodingTensors& saved) override {
    for (const auto& [name, part] : parts) {
      const auto length = static_cast<std::int64_t>((sums_.front().*part).size());
      if (length == 0) continue;
      const at::Tensor joined =
          saved_tensor(saved, name, {static_cast<std::int64_t>(sums_.size()), length}, at::kFloat)
              .contiguous();
      const float* from = joined.const_data_ptr<float>();
      for (cpu::CausalHydraSums& one : sums_) {
        std::copy(from, from + length, (one.*part).begin());
        from += length;
        one.tokens = tokens();
      }
    }
  }

private:
  static constexpr std::pair<const char*, std::vector<float> cpu::CausalHydraSums::*> parts[] = {
      {"sum", &cpu::CausalHydraSums::sum},
      {"part", &cpu::CausalHydraSums::part},
      {"largest", &cpu::CausalHydraSums::largest},
      {"total", &cpu::CausalHydraSums::total},
      {"weighted", &cpu::CausalHydraSums::weighted}};

  std::vector<cpu::CausalHydraSums> sums_;
};

} // namespace

std::unique_ptr<DecodingState> make_hydra_decoding(const HydraMaps& maps, const AttentionShape& shape) {
  if (maps.query.fused && maps.key.fused && loops_take(shape))
    return std::make_unique<FusedHydraState>(maps, shape);
  return std::make_unique<ComposedHydraState>(maps, shape);
}

} // namespace hydrascope
