// KL(softmax ‖ kernel) of each head's weights (Hedgehog paper, tables 4, 5 and 14).
#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>

#include "engine/run/quantities/head_reader.h"
#include "engine/run/quantities/measures.h"

namespace hydrascope {
namespace {
constexpr double kFloor = 1e-12;
} // namespace

Divergence kl_divergence(const at::Tensor& softmax_weights, const at::Tensor& kernel_weights,
                         const at::Tensor& real_rows, const at::Tensor& visible) {
  const at::Tensor ratio = softmax_weights.clamp_min(kFloor).log() - kernel_weights.clamp_min(kFloor).log();
  at::Tensor terms = softmax_weights * ratio;
  at::Tensor clamped = at::logical_or(softmax_weights < kFloor, kernel_weights < kFloor);
  if (visible.defined()) {
    terms = at::where(visible, terms, 0.0);
    clamped = clamped & visible;
  }
  Divergence divergence;
  divergence.kl = mean_over_rows(terms.sum({-1}, false, at::kDouble), real_rows);

  divergence.clamped = clamped.sum().to(at::kDouble);
  divergence.entries = visible.defined()
                           ? visible.sum().to(at::kDouble) * static_cast<double>(clamped.size(1))
                           : at::full_like(divergence.clamped, static_cast<double>(clamped.numel()));
  return divergence;
}

namespace {

class DivergenceReader final : public HeadReader {
public:
  void add(RowTile& tile, const at::Tensor& weights) override {
    // With a different number of heads there is no softmax head to compare each head with.
    if (weights.size(1) != tile.softmax().size(1)) return;
    const Divergence divergence = kl_divergence(tile.softmax(), weights, tile.real_rows(), tile.visible());
    mean_.add_mean(divergence.kl, tile.count());
    clamped_ = clamped_.defined() ? clamped_ + divergence.clamped : divergence.clamped;
    entries_ = entries_.defined() ? entries_ + divergence.entries : divergence.entries;
  }
  HeadValues finish(LayerOutputs& /*outputs*/) override {
    if (!entries_.defined()) return {mean_.value()};
    return {mean_.value(), at::where(entries_ > 0, clamped_ / entries_, 0.0).item<double>()};
  }

private:
  RowMean mean_;
  at::Tensor clamped_, entries_; // sums over tiles, single numbers
};

} // namespace

HeadQuantity kl_quantity() {
  return {{.name = "kl",
           .title = "KL",
           .heading = "KL(softmax ‖ kernel), nats",
           .unit = "nats",
           .meaning = "0: the kernel's rows are softmax's; natural logarithm",
           .undefined = "undefined: this kernel's weights are signed",
           .summary = "KL(softmax ‖ kernel) by layer and head (Hedgehog paper, tables 4, 5)",
           .parts = {{"kl", "KL(softmax ‖ kernel) (nats)"}},
           .against_softmax = true},
          [](const KernelInfo& kernel) -> std::unique_ptr<HeadReader> {
            if (!has_distributions(kernel)) return nullptr;
            return std::make_unique<DivergenceReader>();
          }};
}

} // namespace hydrascope
