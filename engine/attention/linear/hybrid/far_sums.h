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
  // their own place. ranges (B,3) int64, or (1,3) of sequences without padding: the places [0th, 1st) of a
  // sequence hold a key, those from the 2nd on no query, whose sums are undefined; the 0th must be 0 where
  // there are earlier keys. Undefined: every place holds both. Differentiable where composed.
  virtual WindowSums extend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& ranges) = 0;

  virtual std::int64_t bytes() const = 0;
  virtual std::unique_ptr<FarSums> clone() const = 0;
  // As those of DecodingState; of sums that hold a key.
  virtual DecodingTensors kept() const = 0;
  virtual void restore(const DecodingTensors& saved) = 0;

protected:
  FarSums() = default;
  FarSums(const FarSums&) = default;
};

// Whether the fused loops compute the sums of inputs of a shape.
bool far_sums_are_fused(const FeatureMap& map, const AttentionShape& shape);
// Of inputs of a shape. The map has to outlive the sums.
std::unique_ptr<FarSums> make_far_sums(const FeatureMap& map, const AttentionShape& shape,
                                       const KernelParameters& parameters);

} // namespace hydrascope
