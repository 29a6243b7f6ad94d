// KL(softmax ‖ kernel) of each head's weights (Hedgehog paper, tables 4, 5 and 14).
#include "engine/run/quantities/head_reader.h"
#include "engine/run/quantities/measures.h"

namespace hydrascope {
namespace {

class DivergenceReader final : public HeadReader {
public:
  void add(RowTile& tile, const at::Tensor& weights) override {
    // A kernel that splits the features into another number of heads has no counterpart of each head.
    if (weights.size(1) != tile.softmax().size(1)) return;
    const Divergence divergence = kl_divergence(tile.softmax(), weights, tile.real_rows(), tile.mask());
    mean_.add_mean(divergence.kl, tile.count());
    clamped_ += divergence.clamped_share * tile.entries();
    entries_ += tile.entries();
  }
  HeadValues finish(LayerOutputs& /*outputs*/) override {
    return {mean_.value(), entries_ > 0 ? clamped_ / entries_ : 0.0};
  }

private:
  RowMean mean_;
  double clamped_ = 0, entries_ = 0;
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
