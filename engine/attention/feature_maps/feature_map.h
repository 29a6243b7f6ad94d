// The feature map φ of normalised linear attention: one file per map in this folder.
#pragma once

#include <functional>
#include <memory>

#include "engine/attention/registry.h"

namespace hydrascope {

enum class Side { query, key };

// What φ may look at besides its argument.
struct FeatureContext {
  const KernelParameters& parameters;
  at::Tensor mask; // (B,N) bool, true = real token; undefined: all real
  at::Tensor rows; // (R) int64: the tokens that x holds; undefined: all
};

class FeatureMap {
public:
  virtual ~FeatureMap() = default;

  // φ(x) of x (B,H,R,d) → (B,H,R,d′); log φ(x) where `logarithmic()`.
  virtual at::Tensor features(const at::Tensor& x, Side side, const FeatureContext& context) const = 0;

  // Exponential maps give log φ: the kernel then scales them so that nothing over- or underflows.
  virtual bool logarithmic() const { return false; }
  // d′ for head width d.
  virtual std::int64_t width(std::int64_t head_width) const { return head_width; }
  virtual KernelParameters initial_parameters(std::int64_t /*heads*/, std::int64_t /*head_width*/) const {
    return {};
  }
  // Multiply-accumulates of computing φ of all queries and keys of one sequence with all its heads.
  virtual double cost(const AttentionShape& /*shape*/) const { return 0; }
};

using MakeFeatureMap = std::function<std::unique_ptr<FeatureMap>(const KernelSpec&)>;

// The registry's entry of a normalised linear kernel (Hedgehog paper, Eq. 2): fills in what all of them
// share. Defined in normalised_linear.cpp.
RegistryEntry normalised_linear(KernelInfo info, MakeFeatureMap make_map);

} // namespace hydrascope
