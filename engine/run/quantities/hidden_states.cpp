#include "engine/run/quantities/hidden_states.h"

#include <vector>

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include "engine/run/reading.h"

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

class HiddenNormsReading final : public Reading {
  bool needs_hidden() const override { return true; }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    std::vector<at::Tensor> norms;
    for (const at::Tensor& hidden : pass.outcome.hidden)
      norms.push_back(at::linalg_vector_norm(hidden.select(0, 0).to(at::kFloat), 2, {-1}));
    results.add(HiddenNormsKey{}, to_array(at::stack(norms)));
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

class HiddenNormsQuantity final : public QuantityOf<HiddenNormsKey> {
  // The pass keeps the hidden states until it is finished.
  double key_bytes(const HiddenNormsKey& /*key*/, const ModelInfo& model,
                   std::int64_t tokens) const override {
    return static_cast<double>(model.layers + 1) * static_cast<double>(tokens) * model.width * sizeof(float);
  }
  std::unique_ptr<Reading> reading(const HiddenNormsKey& /*key*/,
                                   const PlanContext& /*context*/) const override {
    return std::make_unique<HiddenNormsReading>();
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

const Quantity& quantity_of(const HiddenNormsKey& /*key*/) {
  static const HiddenNormsQuantity quantity;
  return quantity;
}

const Quantity& quantity_of(const LogitsKey& /*key*/) {
  static const LogitsQuantity quantity;
  return quantity;
}

} // namespace hydrascope
