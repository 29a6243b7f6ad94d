#include "engine/run/quantities/focus_map.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include "engine/base/error.h"
#include "engine/run/quantities/measures.h"
#include "engine/run/reading.h"

namespace hydrascope {

FocusMap focus_map(const Kernel& kernel, const AttentionInput& input, const KernelParameters& parameters,
                   const at::Tensor& out, const at::Tensor& g, std::optional<std::int64_t> query) {
  const at::NoGradGuard no_grad;
  const at::Tensor gradient = g.detach().to(at::kFloat);
  // (N): out_c·g_c of every query, heads summed.
  const at::Tensor carried =
      (out.detach().to(at::kDouble) * gradient.to(at::kDouble)).sum({0, 1, 3}, false, at::kDouble);
  const at::Tensor shown = query ? gradient.select(2, *query) : gradient;
  const at::Tensor sum = carried.sum();
  // One wait for the device.
  const at::Tensor read =
      at::stack({sum, query ? carried.select(0, *query) : sum, shown.ne(0).any().to(at::kDouble)}).cpu();
  const double everything = read[0].item<double>();

  FocusMap map;
  map.total = read[1].item<double>();
  if (query && map.total != everything)
    map.share = everything != 0 ? map.total / everything : std::numeric_limits<double>::quiet_NaN();
  map.zero_gradient = read[2].item<double>() == 0;
  map.contributions = kernel.contributions(input, parameters, query, shown).select(0, 0).to(at::kFloat);
  return map;
}

FocusMap focus_map_of(int layer, const FinishedPass& pass) {
  const AttentionTap& tap = pass.taps.at(layer);
  const LayerKernel& kernel = pass.pass.layers[static_cast<std::size_t>(layer)];
  return focus_map(*kernel.kernel, constant_input(tap.input), kernel.parameters, tap.out,
                   pass.gradients.at(layer), pass.result.query);
}

namespace {

class FocusReading final : public Reading {
public:
  explicit FocusReading(const FocusKey& key) : key_(key) {}

  bool needs_gradient(int layer) const override { return layer == key_.layer; }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    if (pass.control.stop.stop_requested()) throw Cancelled();
    const FocusMap map = focus_map_of(key_.layer, pass);
    pass.copies.add(map.contributions, [key = key_, &results, total = map.total, share = map.share,
                                        none = map.zero_gradient](Array contributions) {
      results.add(key, {key.layer, std::move(contributions), total, share, none});
    });
  }

private:
  FocusKey key_;
};

class FocusQuantity final : public QuantityOf<FocusKey> {
  std::string key_missing_in(const FocusKey& /*key*/, const CaptureInfo& /*capture*/) const override {
    return needs_a_model;
  }
  void check_key(const FocusKey& key, const RunShape& shape) const override {
    check_below("--layer", key.layer, shape.layers, "layers");
  }
  std::unique_ptr<Reading> reading(const FocusKey& key, const PlanContext& /*context*/) const override {
    return std::make_unique<FocusReading>(key);
  }
};

} // namespace

const Quantity& quantity_of(const FocusKey& /*key*/) {
  static const FocusQuantity quantity;
  return quantity;
}

} // namespace hydrascope
