#include "engine/run/quantities/deletion_reading.h"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>

#include "engine/run/finite_check.h"

namespace hydrascope {

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

CheckedTarget fixed_target(CheckedTarget target, const at::Tensor& logits) {
  if (target.kind != Target::Kind::predicted) return target;
  target.kind = Target::Kind::class_index;
  target.index = static_cast<int>(logits.argmax(1).item<std::int64_t>());
  return target;
}

DeletionReading deletion_reading(const CheckedTarget& target, const Model& model, const ModelInput& input,
                                 const at::Tensor& output, const at::Tensor& other) {
  const at::NoGradGuard no_grad;
  const bool of_class = target.kind == Target::Kind::class_index;
  const at::Tensor logits = of_class ? model.logits(output, input) : at::Tensor();
  DeletionReading reading;
  reading.value = target_value(target, model.info(), logits, model.final_hidden(output), input.mask, other)
                      .value.item<double>();
  if (of_class) reading.probability = at::softmax(logits.to(at::kDouble), 1)[0][target.index].item<double>();
  return reading;
}

DeletionProbe deletion_probe(Pass pass, CheckedTarget target, at::Tensor other, std::stop_token stop,
                             std::function<void()> block_done) {
  pass.tapped.assign(pass.layers.size(), false);
  pass.first_gradient_layer = static_cast<int>(pass.layers.size());
  pass.keep_hidden = false;
  return
      [pass = std::move(pass), target = std::move(target), other = std::move(other), stop = std::move(stop),
       block_done = std::move(block_done)](const std::vector<std::int64_t>& hidden) {
        const Model& model = *pass.model.model;
        Pass without = pass;
        without.input = with_hidden_tokens(model, pass.input, hidden);
        PrefixCache none(0);
        const PassOutcome outcome = run_pass(without, none, stop, {}, block_done);
        check_finite(outcome.output, model);
        return deletion_reading(target, model, without.input.input, outcome.output, other);
      };
}

} // namespace hydrascope
