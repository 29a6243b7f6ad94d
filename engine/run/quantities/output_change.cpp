// How far a kernel's output lies from softmax's on the same q, k, v.
#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>

#include "engine/run/quantities/head_reader.h"
#include "engine/run/quantities/measures.h"

namespace hydrascope {

at::Tensor output_change(const at::Tensor& softmax_out, const at::Tensor& kernel_out) {
  const at::Tensor reference = softmax_out.to(at::kDouble).flatten(2);
  const at::Tensor changed = kernel_out.to(at::kDouble).flatten(2);
  const at::Tensor reference_norm = reference.norm(2, {-1});
  const at::Tensor changed_norm = changed.norm(2, {-1});
  const at::Tensor cosine = (reference * changed).sum(-1) / (reference_norm * changed_norm);
  const at::Tensor error = (changed - reference).norm(2, {-1}) / reference_norm;
  return at::stack({changed_norm / reference_norm, cosine, error}, -1);
}

namespace {

class OutputChangeReader final : public HeadReader {
public:
  bool reads_weights() const override { return false; }
  HeadValues finish(LayerOutputs& outputs) override {
    return {output_change(outputs.softmax(), outputs.kernel())};
  }
};

} // namespace

HeadQuantity output_change_quantity() {
  using enum HeadQuantityInfo::Colours;
  return {{.name = "change",
           .title = "Output Δ",
           .heading = "Output change",
           .meaning = "against softmax on the same q, k, v",
           .undefined = "undefined: this kernel has another number of heads, or softmax's output is 0",
           .summary = "the output's change against softmax by layer and head",
           .parts = {{"ratio of norms", "‖out kernel‖ / ‖out softmax‖", outputs},
                     {"cosine", "cosine of out kernel and out softmax", signed_unit},
                     {"relative error", "relative error of the output", outputs}},
           .against_softmax = true},
          [](const KernelInfo& /*kernel*/) -> std::unique_ptr<HeadReader> {
            return std::make_unique<OutputChangeReader>();
          }};
}

} // namespace hydrascope
