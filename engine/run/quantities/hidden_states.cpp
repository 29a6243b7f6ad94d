#include "engine/run/quantities/hidden_states.h"

#include "engine/run/reading.h"
#include "engine/run/tensor_array.h"

namespace hydrascope {
namespace {

class PixelsReading final : public Reading {
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    const ModelInput& input = pass.pass.input.input;
    if (input.pixels.defined()) results.add(PixelsKey{}, to_array(input.pixels));
  }
};

class HiddenStatesReading final : public Reading {
  bool needs_hidden() const override { return true; }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    std::vector<Array> states;
    for (const at::Tensor& hidden : pass.outcome.hidden) states.push_back(to_array(hidden));
    results.add(HiddenStatesKey{}, std::move(states));
  }
};

class LogitsReading final : public Reading {
  bool needs_logits() const override { return true; }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    if (pass.logits.defined()) results.add(LogitsKey{}, to_array(pass.logits));
  }
};

class PixelsQuantity final : public QuantityOf<PixelsKey> {
  std::unique_ptr<Reading> reading(const PixelsKey& /*key*/, const PlanContext& /*context*/) const override {
    return std::make_unique<PixelsReading>();
  }
};

class HiddenStatesQuantity final : public QuantityOf<HiddenStatesKey> {
  double key_bytes(const HiddenStatesKey& /*key*/, const ModelInfo& model,
                   std::int64_t tokens) const override {
    return 2.0 * (model.layers + 1) * static_cast<double>(tokens) * model.width * sizeof(float);
  }
  std::unique_ptr<Reading> reading(const HiddenStatesKey& /*key*/,
                                   const PlanContext& /*context*/) const override {
    return std::make_unique<HiddenStatesReading>();
  }
};

class LogitsQuantity final : public QuantityOf<LogitsKey> {
  std::unique_ptr<Reading> reading(const LogitsKey& /*key*/, const PlanContext& /*context*/) const override {
    return std::make_unique<LogitsReading>();
  }
};

} // namespace

const Quantity& quantity_of(const PixelsKey& /*key*/) {
  static const PixelsQuantity quantity;
  return quantity;
}

const Quantity& quantity_of(const HiddenStatesKey& /*key*/) {
  static const HiddenStatesQuantity quantity;
  return quantity;
}

const Quantity& quantity_of(const LogitsKey& /*key*/) {
  static const LogitsQuantity quantity;
  return quantity;
}

} // namespace hydrascope
