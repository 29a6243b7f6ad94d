// The decoder that learns associative recall: embedding, pre-norm blocks of causal attention by any kernel
// and an MLP, a final LayerNorm, logits.
#pragma once

#include <functional>
#include <memory>

#include "engine/attention/kernel.h"
#include "engine/training/optimizer.h"
#include "engine/training/recall.h"

namespace hydrascope::training {

// Rotary position embeddings (Su et al. 2021, Eq. 34; base 10,000; features i and i + d/2 are turned
// together): x (B,H,N,d), d even, of tokens 0 … N−1. Products of a turned query and a turned key depend on
// their distance only.
class Rotary {
public:
  Rotary(std::int64_t tokens, std::int64_t head_width);
  at::Tensor operator()(const at::Tensor& x) const;

private:
  at::Tensor cosine_, sine_; // (N,d), the sine of the first half negative
};

class RecallModel {
public:
  // Starts as LibTorch's own modules do, from the seed. Throws UsageError for a kernel without a causal form.
  RecallModel(const RecallRequest& request, std::uint64_t seed);

  const NamedTensors& leaves() const { return leaves_; }
  const Kernel& kernel() const { return *kernel_; }

  // Called with each layer's attention: what it takes and what it gives.
  using Visitor = std::function<void(int layer, const AttentionInput& input,
                                     const KernelParameters& parameters, const AttentionOutput& output)>;
  // Token ids (B,N) → logits (P,vocabulary) at `positions` (P) int64, counted over the batch's B·N tokens.
  at::Tensor logits(const at::Tensor& tokens, const at::Tensor& positions, const Visitor& visit = {}) const;

private:
  at::Tensor leaf(const std::string& name) const { return leaves_.at(name); }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const;
  at::Tensor norm(const at::Tensor& x, const std::string& name) const;
  at::Tensor attention(const at::Tensor& x, int layer, const Visitor& visit) const;
  KernelParameters kernel_parameters(int layer) const;

  RecallModelShape shape_;
  std::unique_ptr<Kernel> kernel_;
  Rotary rotary_;
  NamedTensors leaves_;
  std::vector<KernelParameters> fixed_; // by layer: what training leaves as it is
};

} // namespace hydrascope::training
