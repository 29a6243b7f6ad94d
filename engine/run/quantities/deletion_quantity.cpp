// The deletion curve of a run. (deletion.cpp holds the part that needs no model.)
#include "engine/run/quantities/deletion.h"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "engine/run/pass.h"
#include "engine/run/predicted_number.h"
#include "engine/run/quantities/measures.h"
#include "engine/run/reading.h"

namespace hydrascope {
namespace {

// Patches and word pieces that are not hidden already; no special tokens, which results are read from.
std::vector<std::int64_t> deletion_candidates(const RunRequest& request, const PreparedInput& input,
                                              const ModelInfo& model) {
  const std::vector<TokenInfo> tokens = token_infos(model, input.input);
  std::vector<std::int64_t> candidates;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto token = static_cast<std::int64_t>(i);
    const auto& hidden = request.hidden_tokens;
    if (!tokens[i].special && std::find(hidden.begin(), hidden.end(), token) == hidden.end())
      candidates.push_back(token);
  }
  return candidates;
}

// The target with the predicted class fixed, from these logits.
CheckedTarget fixed_target(CheckedTarget target, const at::Tensor& logits) {
  if (target.kind != Target::Kind::predicted) return target;
  target.kind = Target::Kind::class_index;
  target.index = static_cast<int>(logits.argmax(1).item<std::int64_t>());
  return target;
}

// The target from a last hidden state (1,N,D); `other` as in target_value().
HiddenTarget hidden_target(const CheckedTarget& target, const Model& model, const ModelInput& input,
                           const at::Tensor& output, const at::Tensor& other) {
  const at::NoGradGuard no_grad;
  const bool of_class = target.kind == Target::Kind::class_index;
  const at::Tensor logits = of_class ? model.logits(output, input) : at::Tensor();
  HiddenTarget reading;
  reading.value =
      target_value(target, model, logits, model.final_hidden(output), input.mask, other).value.item<double>();
  if (of_class && !predicts_number(model.info()))
    reading.probability =
        probabilities_of(logits.to(at::kDouble), model.info())[0][target.index].item<double>();
  return reading;
}

// Runs the pass with more tokens hidden. Caches nothing, as these inputs do not recur. Throws as run_pass and
// check_finite.
DeletionProbe deletion_probe(Pass pass, CheckedTarget target, at::Tensor other, RunControl control) {
  pass.tapped.assign(pass.layers.size(), false);
  pass.first_gradient_layer = static_cast<int>(pass.layers.size());
  pass.keep_hidden = false;
  return [pass = std::move(pass), target = std::move(target), other = std::move(other),
          control = std::move(control)](const std::vector<std::int64_t>& hidden) {
    const Model& model = *pass.model.model;
    Pass without = pass;
    without.input = with_hidden_tokens(model, pass.input, hidden);
    PrefixCache no_cache(0);
    const PassOutcome outcome = run_pass(without, no_cache, control.stop, {}, control.block_done);
    check_finite(outcome.output, model);
    return hidden_target(target, model, without.input.input, outcome.output, other);
  };
}

class DeletionReading final : public Reading {
public:
  DeletionReading(const DeletionKey& key, std::vector<std::int64_t> candidates)
      : key_(key), candidates_(std::move(candidates)) {}

  bool needs_gradient(int layer) const override { return layer == key_.layer; }
  int extra_blocks(const Pass& pass) const override {
    return static_cast<int>(pass.layers.size()) *
           deletion_passes(key_.steps, static_cast<std::int64_t>(candidates_.size()));
  }

  void finish(const FinishedPass& pass, QuantityResults& results) override {
    const Array contributions = to_array(focus_map_of(key_.layer, pass).contributions);
    const CheckedTarget target = fixed_target(pass.target, pass.logits);
    DeletionResult deletion =
        deletion_curves(key_, contributions.values, candidates_,
                        hidden_target(target, *pass.pass.model.model, pass.pass.input.input,
                                      pass.outcome.output.detach(), pass.other),
                        deletion_probe(pass.pass, target, pass.other, pass.control));
    deletion.target = pass.result.target;
    results.add(key_, std::move(deletion));
  }

private:
  DeletionKey key_;
  std::vector<std::int64_t> candidates_;
};

class DeletionQuantity final : public QuantityOf<DeletionKey> {
  std::string key_missing_in(const DeletionKey& /*key*/, const CaptureInfo& /*capture*/) const override {
    return needs_a_model;
  }
  void check_key(const DeletionKey& key, const RunShape& shape) const override {
    check_below("layer", key.layer, shape.layers, "layers");
  }
  std::unique_ptr<Reading> reading(const DeletionKey& key, const PlanContext& context) const override {
    return std::make_unique<DeletionReading>(
        key, deletion_candidates(context.request, context.own.input, context.own.model.model->info()));
  }
};

} // namespace

const Quantity& quantity_of(const DeletionKey& /*key*/) {
  static const DeletionQuantity quantity;
  return quantity;
}

} // namespace hydrascope
