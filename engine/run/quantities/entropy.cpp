// Entropy of each head's weights: how widely a query spreads its attention (Hedgehog paper, section 3.2).
#include <ATen/TensorOperators.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/xlogy.h>

#include "engine/run/quantities/head_reader.h"
#include "engine/run/quantities/measures.h"

namespace hydrascope {

at::Tensor entropy(const at::Tensor& weights, const at::Tensor& real_rows) {
  const at::Tensor rows = at::xlogy(weights, weights).neg().sum({-1}, false, at::kDouble);
  return mean_over_rows(rows, real_rows);
}

namespace {

class EntropyReader final : public HeadReader {
public:
  void add(RowTile& tile, const at::Tensor& weights) override {
    mean_.add_mean(entropy(weights, tile.real_rows()), tile.count());
  }
  HeadValues finish(LayerOutputs& /*outputs*/) override { return {mean_.value()}; }

private:
  RowMean mean_;
};

} // namespace

HeadQuantity entropy_quantity() {
  return {{.name = "entropy",
           .title = "Entropy",
           .heading = "Entropy, nats",
           .unit = "nats",
           .meaning = "low: each query looks at few tokens; natural logarithm",
           .undefined = "undefined: this kernel's weights are signed",
           .summary = "entropy by layer and head (Hedgehog paper, Fig. 2)",
           .parts = {{"entropy", "entropy (nats)"}}},
          [](const KernelInfo& kernel) -> std::unique_ptr<HeadReader> {
            if (!has_distributions(kernel)) return nullptr;
            return std::make_unique<EntropyReader>();
          }};
}

} // namespace hydrascope
