// The feature map φ of linear attention: one file per map in this folder.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/loop_input.h"
#include "engine/attention/simd/loop_types.h"

namespace hydrascope {

enum class Side { query, key };

// What φ may depend on besides its argument.
struct FeatureContext {
  const KernelParameters& parameters;
  at::Tensor mask;              // (B,N) bool, true = real token; undefined: all real
  at::Tensor rows;              // (R) int64: the tokens of x; undefined: all
  std::int64_t tokens = 0;      // N
  at::Device device = at::kCPU; // of the input
};

class FeatureMap {
public:
  virtual ~FeatureMap() = default;

  // φ(x) of x (B,H,R,d) → (B,H,R,d′); log φ(x) where `logarithmic()`.
  virtual at::Tensor features(const at::Tensor& x, Side side, const FeatureContext& context) const = 0;

  // Exponential maps return log φ, so that the kernel can scale the features without over- or underflow.
  virtual bool logarithmic() const { return false; }
  // d′ for head width d.
  virtual std::int64_t width(std::int64_t head_width) const { return head_width; }
  virtual KernelParameters initial_parameters(std::int64_t /*heads*/, std::int64_t /*head_width*/,
                                              int /*layer*/) const {
    return {};
  }
  virtual std::vector<std::string> fixed_parameters() const { return {}; }
  // As Kernel::leading_maps.
  virtual std::optional<LeadingMaps> leading_maps(std::int64_t /*heads*/, std::int64_t /*head_width*/,
                                                  const KernelParameters& /*parameters*/) const {
    return std::nullopt;
  }
  // Whether explicit weights are cheaper to compute by products() than through φ.
  virtual bool products_are_cheaper() const { return false; }
  // φ(q)·φ(k)ᵀ (B,H,R,T) of query (B,H,R,d), key (B,H,T,d); defined where products_are_cheaper().
  virtual at::Tensor products(const at::Tensor& /*query*/, const at::Tensor& /*key*/) const { return {}; }
  // φ of the fused loops, and the projection before it, which together equal features(); nullopt if the loops
  // do not support φ. loop_projection() throws UsageError for parameters of a wrong shape.
  virtual std::optional<cpu::PointMap> point_map() const { return std::nullopt; }
  virtual LoopProjection loop_projection(Side /*side*/, std::int64_t /*heads*/, std::int64_t /*head_width*/,
                                         const FeatureContext& /*context*/) const {
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

// Linear attention by the CPU's fused loops (cpu/linear.h), for inputs of any strides that loops_take(): q,
// k, v (B,H,N,d) → out (B,H,N,d) of their type; mask (B,N) bool or undefined. normalised: divides the outputs
// by φ(q)·Σφ(k). Products of bfloat16 inputs are of bfloat16 where the processor has them. Tokens are
// processed in parts whose number depends on N alone, so the result does not depend on the number of threads.
AttentionOutput linear_on_cpu(const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                              const LoopProjection& query, const LoopProjection& key, bool normalised);

} // namespace hydrascope
