// φ itself, for kernels whose weights are products of features: what stands behind a weight, feature by
// feature.
#pragma once

#include <optional>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// φ of query rows and key tokens, whose products feature by feature are what weights() sums.
struct Features {
  at::Tensor query; // (B,h,R,d′); Hydra (B,1,R,D). Rows of masked queries are 0
  at::Tensor key;   // (B,h,T,d′); Hydra (B,1,T,D). Masked keys are 0
  // Exponential maps: each feature of the keys is divided by its largest real key's and the queries'
  // multiplied by the same, then each query row is divided by its largest. Products are true up to one factor
  // per query row.
  bool rescaled = false;
};

// What a kernel with a feature map is besides a Kernel.
class FeatureKernel {
public:
  virtual ~FeatureKernel() = default;

  // φ of the query rows and the key tokens asked for (int64 tensors, undefined = all) in float32; for kernels
  // that normalise, a weight is their product over the row's sum of products. No gradients flow. Throws
  // UsageError with the plan's reason if unsupported.
  virtual Features features(const AttentionInput& input, const KernelParameters& parameters,
                            const at::Tensor& query_rows, const at::Tensor& key_rows) const = 0;

protected:
  FeatureKernel() = default;
  FeatureKernel(const FeatureKernel&) = default;
  FeatureKernel& operator=(const FeatureKernel&) = default;
};

// The same of any kernel; nullopt where it has no feature map (the softmax family).
std::optional<Features> features_of(const Kernel& kernel, const AttentionInput& input,
                                    const KernelParameters& parameters, const at::Tensor& query_rows,
                                    const at::Tensor& key_rows);

} // namespace hydrascope
