// The feature map φ of linear attention: one file per map in this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/loop_input.h"
#include "engine/attention/simd/loop_types.h"

namespace hydrascope {

// The most features d′ that a parameter or a user's map may ask for: sums of keys and values hold d′ × d
// numbers for each head.
inline constexpr std::int64_t most_features = 65'536;

enum class Side { query, key };

// What φ may depend on besides its argument.
struct FeatureContext {
  const KernelParameters& parameters;
  HeadShape heads;              // of the model
  at::Tensor mask;              // (B,N) bool, true = real token; undefined: all real
  at::Tensor rows;              // (R) int64: the tokens of x; undefined: all
  std::int64_t tokens = 0;      // N; of a growing sequence the tokens so far, those of x included
  at::Device device = at::kCPU; // of the input
};

class FeatureMap {
public:
  virtual ~FeatureMap() = default;

  // φ(x) of x (B,H,R,d) → (B,H,R,d′); log φ(x) where `logarithmic()`. Of keys H is the number of key/value
  // heads unless mixes_heads().
  virtual at::Tensor features(const at::Tensor& x, Side side, const FeatureContext& context) const = 0;

  // Exponential maps return log φ, so that the kernel can scale the features without over- or underflow.
  virtual bool logarithmic() const { return false; }
  // Whether φ of a head depends on the other heads: then grouped heads have to be processed one by one.
  virtual bool mixes_heads() const { return false; }
  // Why φ cannot be computed while a sequence grows, its length unknown; empty if it can.
  virtual std::string growth_refusal() const { return {}; }
  // d′ for head width d.
  virtual std::int64_t width(std::int64_t head_width) const { return head_width; }
  // Those of the d′ features that equal another. Their products are not computed.
  virtual std::int64_t repeated_features(std::int64_t /*head_width*/) const { return 0; }
  virtual KernelParameters initial_parameters(const HeadShape& /*shape*/, int /*layer*/) const { return {}; }
  virtual std::vector<std::string> fixed_parameters() const { return {}; }
  // As Kernel::leading_maps.
  virtual std::optional<LeadingMaps> leading_maps(const HeadShape& /*shape*/,
                                                  const KernelParameters& /*parameters*/) const {
    return std::nullopt;
  }
  // Whether explicit weights are cheaper to compute by products() than through φ.
  virtual bool products_are_cheaper() const { return false; }
  // φ(q)·φ(k)ᵀ (B,H,R,T) of query (B,H,R,d), key (B,H,T,d); defined where products_are_cheaper().
  virtual at::Tensor products(const at::Tensor& /*query*/, const at::Tensor& /*key*/) const { return {}; }
  // φ of the fused loops, and the projection before it, which together equal features(); nullopt if the loops
  // do not support φ. The projection of keys has as many maps as there are key/value heads. loop_projection()
  // throws UsageError for parameters of a wrong shape.
  virtual std::optional<cpu::PointMap> point_map() const { return std::nullopt; }
  virtual LoopProjection loop_projection(Side /*side*/, const FeatureContext& /*context*/) const {
    return {};
  }
  // Why the map does not support this input; empty if it does.
  virtual std::string refusal(const AttentionShape& /*shape*/) const { return {}; }
  // Multiply-accumulates of φ of all queries and keys of one sequence with all its heads.
  virtual double cost(const AttentionShape& /*shape*/) const { return 0; }
};

// Linear attention with this map, normalised (Hedgehog paper, Eq. 2) or not (Hydra paper, Eq. 7).
std::unique_ptr<Kernel> make_linear(const KernelSpec& spec, std::unique_ptr<FeatureMap> map, bool normalised);

using MakeFeatureMap = std::function<std::unique_ptr<FeatureMap>(const KernelSpec&)>;

// The registry's entry of a normalised linear kernel (Hedgehog paper, Eq. 2), with the facts that all of them
// share.
RegistryEntry normalised_linear(KernelInfo info, MakeFeatureMap make_map);
// The same without a normaliser and with `heads=`: out = φ(q)(φ(k)ᵀ v) (Hydra paper, Eq. 7).
RegistryEntry unnormalised_linear(KernelInfo info, MakeFeatureMap make_map);

} // namespace hydrascope
