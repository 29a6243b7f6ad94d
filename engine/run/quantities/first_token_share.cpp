// Share of a layer's weight that falls on the first token, mean over heads and rows: attention sinks (Xiao et
// al. 2024, "Efficient Streaming Language Models with Attention Sinks", section 3.1).
#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

#include "engine/run/quantities/head_reader.h"

namespace hydrascope {
namespace {

class FirstTokenReader final : public HeadReader {
public:
  void add(RowTile& tile, const at::Tensor& weights) override {
    at::Tensor shares = weights.select(3, tile.input().queries).to(at::kDouble); // (B,H,R)
    if (tile.real_rows().defined()) shares = at::where(tile.real_rows().unsqueeze(1), shares, 0.0);
    mean_.add_sum(shares.sum(-1), tile.count());
  }
  HeadValues finish(LayerOutputs& /*outputs*/) override { return {mean_.value()}; }

private:
  RowMean mean_;
};

} // namespace

HeadQuantity first_token_share_quantity() {
  return {{.name = "sink",
           .title = "Sinks",
           .heading = "Share of weight on the first token",
           .meaning = "high: an attention sink; 1/N where attention is uniform",
           .undefined = "undefined: this kernel's weights are signed",
           .summary = "share of weight on the first token by layer: attention sinks (Xiao et al. 2024)",
           .parts = {{"sink", "share of weight on the first token"}},
           .of_layers = true},
          [](const KernelInfo& kernel) -> std::unique_ptr<HeadReader> {
            if (!has_distributions(kernel)) return nullptr;
            return std::make_unique<FirstTokenReader>();
          }};
}

} // namespace hydrascope
