#include "engine/runtime/facts.h"

#include <limits>

#include "engine/runtime/tensor_array.h"

namespace hydrascope {
namespace {

constexpr std::size_t kMostFacts = 20000;

std::vector<float> undefined(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
}

// One sequence's values by head; not a number where there are none, or for another number of heads than the
// layer's.
std::vector<float> values_of(const at::Tensor& values, std::int64_t heads) {
  if (!values.defined() || values.size(1) != heads) return undefined(heads);
  return to_array(values.select(0, 0)).values;
}

} // namespace

LayerFacts layer_facts(const FactKinds& kinds, const AttentionInput& input, const LayerKernel& kernel) {
  const KernelFacts read = kernel_facts(kinds, input, {&kernel, 1}).front();
  const std::int64_t heads = input.q.size(1);
  LayerFacts facts;
  if (kinds.entropy) facts.entropy = values_of(read.entropy, heads);
  if (kinds.kl) facts.kl = values_of(read.kl, heads);
  if (kinds.spearman) facts.spearman = values_of(read.spearman, heads);
  if (kinds.change) facts.change = values_of(read.change, heads);
  facts.clamped_share = read.clamped_share;
  return facts;
}

const LayerFacts* FactCache::find(const std::string& key, const FactKinds& kinds) const {
  const auto found = facts_.find(key);
  if (found == facts_.end()) return nullptr;
  const LayerFacts& facts = found->second;
  const bool all = (!kinds.entropy || !facts.entropy.empty()) && (!kinds.kl || !facts.kl.empty()) &&
                   (!kinds.change || !facts.change.empty()) && (!kinds.spearman || !facts.spearman.empty());
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
  if (!facts.spearman.empty()) known.spearman = facts.spearman;
  return known;
}

} // namespace hydrascope
