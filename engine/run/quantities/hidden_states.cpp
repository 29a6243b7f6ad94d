#include "engine/run/quantities/hidden_states.h"

#include <utility>
#include <vector>

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include "engine/run/reading.h"

namespace hydrascope {
namespace {

class PixelsReading final : public Reading {
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    const ModelInput& input = pass.pass.input.input;
    if (!input.pixels.defined()) return;
    pass.copies.add(input.pixels, [&results](Array pixels) { results.add(PixelsKey{}, std::move(pixels)); });
  }
};

class HiddenStatesReading final : public Reading {
  bool needs_hidden() const override { return true; }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    for (const at::Tensor& hidden : pass.outcome.hidden)
      pass.copies.add(hidden, [this](Array state) { states_.push_back(std::move(state)); });
    pass.copies.then([this, &results] { results.add(HiddenStatesKey{}, std::move(states_)); });
  }

  std::vector<Array> states_;
};

class HiddenNormsReading final : public Reading {
  bool needs_hidden() const override { return true; }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    std::vector<at::Tensor> norms;
    for (const at::Tensor& hidden : pass.outcome.hidden)
      norms.push_back(at::linalg_vector_norm(hidden.select(0, 0).to(at::kFloat), 2, {-1}));
    pass.copies.add(at::stack(norms),
                    [&results](Array of_layers) { results.add(HiddenNormsKey{}, std::move(of_layers)); });
  }
};

class LogitsReading final : public Reading {
  bool needs_logits() const override { return true; }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    if (!pass.logits.defined()) return;
    ModelInput input = pass.pass.input.input;
    const bool one_token = input.read.defined();
    input.read = at::Tensor();
    const at::Tensor all =
        one_token ? pass.pass.model.model->logits(pass.outcome.output.detach(), input) : pass.logits;
    pass.copies.add(all, [&results](Array logits) { results.add(LogitsKey{}, std::move(logits)); });
  }
};

class PixelsQuantity final : public QuantityOf<PixelsKey> {
  std::string key_missing_in(const PixelsKey& /*key*/, const CaptureInfo& /*capture*/) const override {
    return needs_a_model;
  }
  std::unique_ptr<Reading> reading(const PixelsKey& /*key*/, const PlanContext& /*context*/) const override {
    return std::make_unique<PixelsReading>();
  }
};

class HiddenStatesQuantity final : public QuantityOf<HiddenStatesKey> {
  std::string key_missing_in(const HiddenStatesKey& /*key*/, const CaptureInfo& /*capture*/) const override {
    return needs_a_model;
  }
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
  std::string key_missing_in(const HiddenNormsKey& /*key*/, const CaptureInfo& /*capture*/) const override {
    return needs_a_model;
  }
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
  std::string key_missing_in(const LogitsKey& /*key*/, const CaptureInfo& /*capture*/) const override {
    return needs_a_model;
  }
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
