// The linear part of hybrid attention, over the keys outside of a query's window: fused on the CPU, or
// composed.
#pragma once

#include <memory>

#include "engine/attention/interface/decoding.h"
#include "engine/attention/linear/feature_map.h"
#include "engine/attention/linear/hybrid/window_sums.h"

namespace hydrascope {

// The sums over the keys so far that are outside of the window.
class FarSums {
public:
  virtual ~FarSums() = default;
  FarSums& operator=(const FarSums&) = delete;

  // Adds R keys and values (B,H_k,R,d) and returns the sums of the queries (B,H,R,d) over the keys up to
  // their own place. keys (B or 1,2) int64: the places of a sequence from the first to before the second hold
  // a key; the first is 0 where there are earlier keys. Differentiable where composed.
  virtual WindowSums extend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& keys) = 0;

  virtual std::int64_t bytes() const = 0;
  virtual std::unique_ptr<FarSums> clone() const = 0;
  // As those of DecodingState; of sums that hold a key.
  virtual DecodingTensors kept() const = 0;
  virtual void restore(const DecodingTensors& saved) = 0;

protected:
  FarSums() = default;
  FarSums(const FarSums&) = default;
};

// Of inputs of a shape. The map has to outlive the sums.
std::unique_ptr<FarSums> make_far_sums(const FeatureMap& map, const AttentionShape& shape,
                                       const KernelParameters& parameters);

} // namespace hydrascope
