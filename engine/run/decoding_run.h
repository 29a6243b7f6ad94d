// A decoder with the states of its layers: reads tokens and predicts the next one.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/decoding.h"
#include "engine/run/pass.h"
#include "engine/run/placement.h"

namespace hydrascope {

// For one thread at a time.
class DecodingRun {
public:
  // `tokens`: the length to be expected. Throws UsageError for a model that is no decoder and for kernels
  // that cannot be decoded.
  DecodingRun(const AppliedModel& model, const std::vector<KernelSpec>& kernels, const Placement& placement,
              std::int64_t tokens);

  // Adds the next tokens (1,R) to the states. Returns the logits (V) after the last of them, float32, where
  // the model is. Throws Cancelled, UsageError beyond the model's positions.
  at::Tensor read(const at::Tensor& ids, const std::stop_token& stop = {});

  const Model& model() const { return *pass_.model.model; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t state_bytes() const; // of all layers

private:
  Pass pass_;
  std::int64_t tokens_ = 0;
};

} // namespace hydrascope
