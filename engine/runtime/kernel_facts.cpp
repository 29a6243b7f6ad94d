#include "engine/runtime/kernel_facts.h"

#include <algorithm>
#include <map>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>

#include "engine/attention/tokens.h"
#include "engine/inspect/inspect.h"
#include "engine/inspect/monotonicity.h"

namespace hydrascope {
namespace {

constexpr std::int64_t kTileBytes = std::int64_t{32} << 20;

// A mean that comes tile by tile, each with its number of rows (B,1).
struct RunningMean {
  at::Tensor sum, count;

  void add_sum(const at::Tensor& values, const at::Tensor& rows) {
    sum = sum.defined() ? sum + values : values;
    count = count.defined() ? count + rows : rows;
  }
  void add_mean(const at::Tensor& mean, const at::Tensor& rows) {
    add_sum(at::where(rows > 0, mean * rows, 0.0), rows); // no rows: the mean is not a number
  }
  at::Tensor value() const { return sum.defined() ? sum / count : at::Tensor(); }
};

struct KernelSums {
  RunningMean entropy, kl, spearman;
  double clamped = 0, entries = 0;
};

// Query rows that fit memory, and what all kernels share there.
struct Tile {
  at::Tensor rows;      // (R) int64
  at::Tensor real_rows; // (B,R) bool or undefined
  at::Tensor count;     // (B,1) float64, number of real rows
  double entries = 0;   // real rows × real keys, over the batch
  at::Tensor softmax;   // softmax's weights, where they are needed
  at::Tensor visible;
  std::map<std::int64_t, RankedRows> scores; // by number of heads
};

class LayerReader {
public:
  LayerReader(const FactKinds& kinds, const AttentionInput& input, std::span<const LayerKernel> kernels)
      : kinds_(kinds),
        input_(input),
        kernels_(kernels),
        softmax_(make_kernel(KernelSpec{})),
        mask_(real_mask(input)),
        sums_(kernels.size()) {
    for (const LayerKernel& kernel : kernels) {
      most_heads_ = std::max(most_heads_, kernel.kernel->weight_heads(shape_of(input)));
      distributions_ = distributions_ || has_distributions(kernel.kernel->info());
    }
  }

  std::vector<KernelFacts> read() {
    const bool weights = kinds_.spearman || ((kinds_.entropy || kinds_.kl) && distributions_);
    const std::int64_t tokens = input_.q.size(2);
    const std::int64_t row_bytes =
        input_.q.size(0) * most_heads_ * tokens * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t step = std::clamp<std::int64_t>(kTileBytes / row_bytes, 1, tokens);
    for (std::int64_t first = 0; weights && first < tokens; first += step) {
      Tile tile = make_tile(first, std::min(tokens, first + step));
      for (std::size_t i = 0; i < kernels_.size(); ++i) read_weights(tile, kernels_[i], sums_[i]);
    }
    std::vector<KernelFacts> facts;
    for (const KernelSums& sums : sums_) {
      KernelFacts kernel{sums.entropy.value(), sums.kl.value(), sums.spearman.value(), {}, 0, 0};
      if (sums.entries > 0) kernel.clamped_share = sums.clamped / sums.entries;
      facts.push_back(std::move(kernel));
    }
    if (kinds_.change) read_outputs(facts);
    return facts;
  }

private:
  bool is_softmax(const LayerKernel& kernel) const { return kernel.kernel->spec() == softmax_->spec(); }

  Tile make_tile(std::int64_t first, std::int64_t end) const {
    Tile tile;
    tile.rows = at::arange(first, end, at::TensorOptions().dtype(at::kLong));
    tile.real_rows = take_mask(mask_, tile.rows);
    const std::int64_t batch = input_.q.size(0), tokens = input_.q.size(2);
    tile.count = mask_.defined() ? tile.real_rows.sum(1, true).to(at::kDouble)
                                 : at::full({batch, 1}, static_cast<double>(end - first), at::kDouble);
    const at::Tensor keys = mask_.defined() ? mask_.sum(1, true).to(at::kDouble)
                                            : at::full({batch, 1}, static_cast<double>(tokens), at::kDouble);
    tile.entries = (tile.count * keys).sum().item<double>();
    if (kinds_.kl && distributions_) tile.softmax = softmax_->weights(input_, {}, tile.rows);
    if (kinds_.spearman) tile.visible = visible_keys(input_, tile.rows);
    return tile;
  }

  const RankedRows& scores(Tile& tile, std::int64_t heads) const {
    const auto known = tile.scores.find(heads);
    if (known != tile.scores.end()) return known->second;
    const at::Tensor values = attention_scores(input_, tile.rows, heads);
    return tile.scores.emplace(heads, rank_rows(values, tile.visible)).first->second;
  }

  void read_weights(Tile& tile, const LayerKernel& kernel, KernelSums& sums) const {
    const bool distributions = has_distributions(kernel.kernel->info()) && (kinds_.entropy || kinds_.kl);
    if (!distributions && !kinds_.spearman) return;
    const at::Tensor weights = tile.softmax.defined() && is_softmax(kernel)
                                   ? tile.softmax
                                   : kernel.kernel->weights(input_, kernel.parameters, tile.rows);
    if (distributions && kinds_.entropy) sums.entropy.add_mean(entropy(weights, tile.real_rows), tile.count);
    if (distributions && kinds_.kl && weights.size(1) == tile.softmax.size(1)) {
      const Divergence divergence = kl_divergence(tile.softmax, weights, tile.real_rows, mask_);
      sums.kl.add_mean(divergence.kl, tile.count);
      sums.clamped += divergence.clamped_share * tile.entries;
      sums.entries += tile.entries;
    }
    if (kinds_.spearman) {
      const RankedRows& ranked = scores(tile, weights.size(1));
      sums.spearman.add_sum(rank_correlation(weights, ranked).sum(-1),
                            ranked.counted.sum(-1).to(at::kDouble));
    }
  }

  void read_outputs(std::vector<KernelFacts>& facts) const {
    const at::Tensor reference = softmax_->run(input_, {}).out;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const LayerKernel& kernel = kernels_[i];
      AttentionOutput output{.out = reference, .path = {}, .zero_denominators = 0};
      if (!is_softmax(kernel)) {
        output = kernel.kernel->run(input_, kernel.parameters);
        // As W_o receives it.
        output.out = kernel.kernel->finish(output.out, input_.mask, kernel.parameters);
      }
      facts[i].change = output_change(reference, output.out);
      facts[i].zero_denominators = output.zero_denominators;
    }
  }

  const FactKinds& kinds_;
  const AttentionInput& input_;
  std::span<const LayerKernel> kernels_;
  std::unique_ptr<Kernel> softmax_;
  at::Tensor mask_; // undefined where every token is real
  std::vector<KernelSums> sums_;
  std::int64_t most_heads_ = 1;
  bool distributions_ = false; // whether any of the kernels has them
};

} // namespace

bool has_distributions(const KernelInfo& info) { return info.normalised && info.weights_positive; }

std::vector<KernelFacts> kernel_facts(const FactKinds& kinds, const AttentionInput& input,
                                      std::span<const LayerKernel> kernels) {
  return LayerReader(kinds, input, kernels).read();
}

} // namespace hydrascope
