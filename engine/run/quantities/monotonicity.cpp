// Spearman's ρ of each head's weights and q·k/√d within rows (Hedgehog paper, section 3.2).
#include "engine/run/quantities/head_reader.h"

namespace hydrascope {
namespace {

class MonotonicityReader final : public HeadReader {
public:
  void add(RowTile& tile, const at::Tensor& weights) override {
    const RankedRows& ranked = tile.scores(weights.size(1));
    mean_.add_sum(rank_correlation(weights, ranked).sum(-1), ranked.counted.sum(-1).to(at::kDouble));
  }
  HeadValues finish(LayerOutputs& /*outputs*/) override { return {mean_.value()}; }

private:
  RowMean mean_;
};

} // namespace

HeadQuantity monotonicity_quantity() {
  return {{.name = "monotonicity",
           .title = "Monotonicity",
           .heading = "Spearman's ρ of weight and q·k/√d",
           .meaning = "1: a larger q·k/√d always has a larger weight",
           .undefined = "undefined: this kernel has another number of heads",
           .summary = "Spearman's ρ of weight and q·k/√d by layer and head (Hedgehog paper, section 3.2)",
           .parts = {{"monotonicity", "Spearman's ρ of weight and q·k/√d",
                      HeadQuantityInfo::Colours::signed_unit}}},
          [](const KernelInfo& /*kernel*/) -> std::unique_ptr<HeadReader> {
            return std::make_unique<MonotonicityReader>();
          }};
}

} // namespace hydrascope
