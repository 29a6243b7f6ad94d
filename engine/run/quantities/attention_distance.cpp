// Mean attention distance of each head: how far, in patches or tokens, a query's attention reaches
// (Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", Fig. 7 right and appendix D.7).
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "engine/run/quantities/head_reader.h"

namespace hydrascope {
namespace {

// The place (n,2) of each token after the prefix: row and column in patches, or the position in the text and
// 0.
at::Tensor places(const TokenLayout& layout, std::int64_t tokens, at::Device device) {
  const at::Tensor index = at::arange(tokens - layout.prefix, at::TensorOptions(device).dtype(at::kDouble));
  if (layout.columns == 0) return at::stack({index, at::zeros_like(index)}, 1);
  const auto columns = static_cast<double>(layout.columns);
  return at::stack({at::floor(index / columns), at::remainder(index, columns)}, 1);
}

class DistanceReader final : public HeadReader {
public:
  // The prefix (class token) has no place: its row and its weight are left out, and the rest of each row is
  // divided by its sum.
  void add(RowTile& tile, const at::Tensor& weights) override {
    if (tile.input().queries > 0) return; // queries and keys have places of their own
    const TokenLayout& layout = tile.input().layout;
    const std::int64_t tokens = tile.input().q.size(2);
    if (!places_.defined()) places_ = places(layout, tokens, weights.device());
    const at::Tensor placed = tile.rows() >= layout.prefix;
    const at::Tensor own = places_.index_select(0, (tile.rows() - layout.prefix).clamp_min(0));
    const at::Tensor distances = (own.unsqueeze(1) - places_.unsqueeze(0)).norm(2, {-1}); // (R,n)
    const at::Tensor shares = weights.slice(3, layout.prefix).to(at::kDouble);            // (B,H,R,n)
    const at::Tensor sums = shares.sum(-1);
    at::Tensor counted = (placed.unsqueeze(0).unsqueeze(0) & (sums > 0));
    if (tile.real_rows().defined()) counted = counted & tile.real_rows().unsqueeze(1);
    const at::Tensor means = at::where(counted, (shares * distances).sum(-1) / sums, 0.0); // (B,H,R)
    mean_.add_sum(means.sum(-1), counted.sum(-1).to(at::kDouble));
  }
  HeadValues finish(LayerOutputs& /*outputs*/) override { return {mean_.value()}; }

private:
  at::Tensor places_;
  RowMean mean_;
};

} // namespace

HeadQuantity attention_distance_quantity() {
  return {{.name = "distance",
           .title = "Distance",
           .heading = "Mean attention distance, patches or tokens",
           .meaning = "low: each query looks at its neighbours",
           .undefined = "undefined: this kernel's weights are signed",
           .summary = "mean attention distance by layer and head (Dosovitskiy et al. 2021, Fig. 7)",
           .parts = {{"distance", "mean attention distance (patches or tokens)"}}},
          [](const KernelInfo& kernel) -> std::unique_ptr<HeadReader> {
            if (!has_distributions(kernel)) return nullptr;
            return std::make_unique<DistanceReader>();
          }};
}

} // namespace hydrascope
