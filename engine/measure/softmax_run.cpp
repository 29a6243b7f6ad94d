#include "engine/measure/softmax_run.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include "engine/run/finite_check.h"
#include "engine/run/pass.h"

namespace hydrascope {
namespace {

// One member of several parts, one after another along the token axis.
at::Tensor joined(const std::vector<AttentionInput>& parts, at::Tensor AttentionInput::*member,
                  std::int64_t axis) {
  std::vector<at::Tensor> tensors;
  for (const AttentionInput& part : parts) {
    if (!(part.*member).defined()) return {};
    tensors.push_back(part.*member);
  }
  return at::cat(tensors, axis);
}

AttentionInput slice(const AttentionInput& whole, std::int64_t first, std::int64_t end) {
  AttentionInput part;
  part.q = whole.q.slice(2, first, end);
  part.k = whole.k.slice(2, first, end);
  part.v = whole.v.slice(2, first, end);
  if (whole.layer_input.defined()) part.layer_input = whole.layer_input.slice(1, first, end);
  return part;
}

} // namespace

void visit_softmax_run(const std::shared_ptr<const Model>& model, const ModelInput& input,
                       const LayerVisitor& visit, const std::stop_token& stop) {
  const at::NoGradGuard no_gradients;
  const auto layers = static_cast<std::size_t>(model->info().layers);
  const LayerKernel softmax{make_kernel(KernelSpec{}), {}, false};
  Pass pass = plain_pass(model, std::vector(layers, softmax), input);
  pass.tapped.assign(layers, true);
  const PassOutcome outcome = run_pass(pass, stop, [&](int layer, const AttentionTap& tap) {
    check_finite(tap.out, *model);
    visit(layer, tap.input);
  });
  check_finite(outcome.output, *model);
}

PieceBuffer::PieceBuffer(int layers, std::int64_t length, std::int64_t skipped)
    : length_(length),
      parts_(static_cast<std::size_t>(layers)),
      tokens_(static_cast<std::size_t>(layers)),
      skip_(static_cast<std::size_t>(layers), skipped) {}

void PieceBuffer::add(int layer, const AttentionInput& input) {
  const auto position = static_cast<std::size_t>(layer);
  const std::int64_t tokens = input.q.size(2), skipped = std::min(tokens, skip_[position]);
  skip_[position] -= skipped;
  if (skipped == tokens) return;
  parts_[position].push_back(skipped > 0 ? slice(input, skipped, tokens) : input);
  tokens_[position] += tokens - skipped;
}

AttentionInput PieceBuffer::take(int layer) {
  const auto position = static_cast<std::size_t>(layer);
  std::vector<AttentionInput>& parts = parts_[position];
  AttentionInput whole;
  whole.q = joined(parts, &AttentionInput::q, 2);
  whole.k = joined(parts, &AttentionInput::k, 2);
  whole.v = joined(parts, &AttentionInput::v, 2);
  whole.layer_input = joined(parts, &AttentionInput::layer_input, 1);
  const std::int64_t tokens = tokens_[position];
  parts.clear();
  if (tokens > length_) parts.push_back(slice(whole, length_, tokens));
  tokens_[position] = tokens - length_;
  return slice(whole, 0, length_);
}

} // namespace hydrascope
