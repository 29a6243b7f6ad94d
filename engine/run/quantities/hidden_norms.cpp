#include "engine/run/quantities/hidden_norms.h"

#include <vector>

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include "engine/run/reading.h"
#include "engine/run/tensor_array.h"

namespace hydrascope {
namespace {

class HiddenNormsReading final : public Reading {
  bool needs_hidden() const override { return true; }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    std::vector<at::Tensor> norms;
    for (const at::Tensor& hidden : pass.outcome.hidden)
      norms.push_back(at::linalg_vector_norm(hidden.select(0, 0).to(at::kFloat), 2, {-1}));
    results.add(HiddenNormsKey{}, to_array(at::stack(norms)));
  }
};

class HiddenNormsQuantity final : public QuantityOf<HiddenNormsKey> {
  // The hidden states are kept until the pass is done.
  double key_bytes(const HiddenNormsKey& /*key*/, const ModelInfo& model,
                   std::int64_t tokens) const override {
    return static_cast<double>(model.layers + 1) * static_cast<double>(tokens) * model.width * sizeof(float);
  }
  std::unique_ptr<Reading> reading(const HiddenNormsKey& /*key*/,
                                   const PlanContext& /*context*/) const override {
    return std::make_unique<HiddenNormsReading>();
  }
};

} // namespace

const Quantity& quantity_of(const HiddenNormsKey& /*key*/) {
  static const HiddenNormsQuantity quantity;
  return quantity;
}

} // namespace hydrascope
