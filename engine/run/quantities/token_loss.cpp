#include "engine/run/quantities/token_loss.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include "engine/run/next_token.h"
#include "engine/run/reading.h"

namespace hydrascope {
namespace {

class TokenLossReading final : public Reading {
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    const Model& model = *pass.pass.model.model;
    const ModelInput& input = pass.pass.input.input;
    if (!model.info().causal || input.token_ids.size(1) < 2) return;
    const at::NoGradGuard no_gradients;
    const NextTokenLoss all = next_token_loss(model, pass.outcome.output, input.token_ids);
    pass.copies.add(all.loss, [this](Array loss) { read_.loss = std::move(loss); });
    pass.copies.add(all.rank, [this](Array rank) { read_.rank = std::move(rank); });
    pass.copies.then([this, &results] { results.add(TokenLossKey{}, std::move(read_)); });
  }

  TokenLoss read_;
};

class TokenLossQuantity final : public QuantityOf<TokenLossKey> {
  std::string key_missing_in(const TokenLossKey& /*key*/, const CaptureInfo& /*capture*/) const override {
    return needs_a_model;
  }
  double key_bytes(const TokenLossKey& /*key*/, const ModelInfo& model, std::int64_t tokens) const override {
    return 3.0 * static_cast<double>(std::min<std::int64_t>(tokens, next_token_piece)) * model.vocabulary *
           sizeof(float);
  }
  std::unique_ptr<Reading> reading(const TokenLossKey& /*key*/,
                                   const PlanContext& /*context*/) const override {
    return std::make_unique<TokenLossReading>();
  }
};

} // namespace

const Quantity& quantity_of(const TokenLossKey& /*key*/) {
  static const TokenLossQuantity quantity;
  return quantity;
}

} // namespace hydrascope
