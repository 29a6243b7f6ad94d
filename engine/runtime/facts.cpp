#include "engine/runtime/facts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include "engine/inspect/inspect.h"
#include "engine/runtime/tensor_array.h"

namespace hydrascope {
namespace {

constexpr std::int64_t kTileBytes = std::int64_t{32} << 20;
constexpr std::size_t kMostFacts = 20000;

std::vector<float> undefined(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
}

// Row-weighted means of per-tile means.
struct Sums {
  at::Tensor entropy, kl;
  double clamped = 0;
  std::int64_t rows = 0;
  void add(at::Tensor& sum, const at::Tensor& mean, std::int64_t count) const {
    const at::Tensor term = mean.to(at::kDouble) * static_cast<double>(count);
    sum = sum.defined() ? sum + term : term;
  }
};

void add_tile(Sums& sums, const FactKinds& kinds, const at::Tensor& softmax_weights,
              const at::Tensor& weights) {
  const std::int64_t rows = weights.size(2);
  if (kinds.entropy) sums.add(sums.entropy, entropy(weights), rows);
  if (kinds.kl && softmax_weights.size(1) == weights.size(1)) {
    const Divergence divergence = kl_divergence(softmax_weights, weights);
    sums.add(sums.kl, divergence.kl, rows);
    sums.clamped += divergence.clamped_share * static_cast<double>(rows);
  }
  sums.rows += rows;
}

std::vector<float> finished(const at::Tensor& sum, std::int64_t rows, std::int64_t heads) {
  if (!sum.defined() || sum.size(1) != heads) return undefined(heads);
  return to_array(sum / static_cast<double>(rows)).values;
}

} // namespace

bool has_distributions(const KernelInfo& info) { return info.normalised && info.weights_positive; }

LayerFacts layer_facts(const FactKinds& kinds, const AttentionInput& input, const LayerKernel& kernel) {
  const auto softmax = make_kernel(KernelSpec{});
  const bool is_softmax = kernel.kernel->spec() == softmax->spec();
  const std::int64_t heads = input.q.size(1);
  const std::int64_t tokens = input.q.size(2);

  LayerFacts facts;
  if ((kinds.entropy || kinds.kl) && has_distributions(kernel.kernel->info())) {
    const auto row_bytes = heads * tokens * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t tile = std::clamp<std::int64_t>(kTileBytes / row_bytes, 1, tokens);
    Sums sums;
    for (std::int64_t first = 0; first < tokens; first += tile) {
      const at::Tensor rows =
          at::arange(first, std::min(tokens, first + tile), at::TensorOptions().dtype(at::kLong));
      const at::Tensor weights = kernel.kernel->weights(input, kernel.parameters, rows);
      const at::Tensor reference = is_softmax || !kinds.kl ? weights : softmax->weights(input, {}, rows);
      add_tile(sums, kinds, reference, weights);
    }
    facts.entropy = kinds.entropy ? finished(sums.entropy, sums.rows, heads) : std::vector<float>{};
    facts.kl = kinds.kl ? finished(sums.kl, sums.rows, heads) : std::vector<float>{};
    facts.clamped_share = sums.clamped / static_cast<double>(sums.rows);
  } else {
    if (kinds.entropy) facts.entropy = undefined(heads);
    if (kinds.kl) facts.kl = undefined(heads);
  }
  if (kinds.change) {
    const at::Tensor reference = softmax->run(input, {}).out;
    // As W_o receives it.
    const auto finished = [&] {
      return kernel.kernel->finish(kernel.kernel->run(input, kernel.parameters).out, input.mask,
                                   kernel.parameters);
    };
    const at::Tensor out = is_softmax ? reference : finished();
    facts.change = to_array(output_change(reference, out)).values;
  }
  return facts;
}

const LayerFacts* FactCache::find(const std::string& key, const FactKinds& kinds) const {
  const auto found = facts_.find(key);
  if (found == facts_.end()) return nullptr;
  const LayerFacts& facts = found->second;
  const bool all = (!kinds.entropy || !facts.entropy.empty()) && (!kinds.kl || !facts.kl.empty()) &&
                   (!kinds.change || !facts.change.empty());
  return all ? &facts : nullptr;
}

const LayerFacts& FactCache::insert(const std::string& key, const LayerFacts& facts) {
  if (facts_.size() >= kMostFacts) facts_.clear();
  LayerFacts& known = facts_[key];
  if (!facts.entropy.empty()) known.entropy = facts.entropy;
  if (!facts.kl.empty()) {
    known.kl = facts.kl;
    known.clamped_share = facts.clamped_share;
  }
  if (!facts.change.empty()) known.change = facts.change;
  return known;
}

} // namespace hydrascope
