// Where a model runs: the device of its parameters and the type of its numbers.
#pragma once

#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "engine/models/transformer/model.h"
#include "engine/run/run.h"

namespace hydrascope {

struct Placement {
  c10::Device device = c10::kCPU; // with its index, except for the CPU
  c10::ScalarType dtype = c10::kFloat;

  bool operator==(const Placement&) const = default;
  std::string device_name() const { return device.str(); } // "cpu", "cuda:0"
  std::string dtype_name() const;                          // as on the command line
};

// The placement of a request, resolved once. Throws Error for a device that is not there, with the reason,
// UsageError for an unknown device or a dtype that does not run on it.
Placement placement_of(const ExecutionOptions& execution);

// Returns what LibTorch keeps for reuse: on an accelerator its allocator's memory, on the CPU the buffers of
// MKL's matrix products, of which each thread has one as large as its largest product needed.
void release_cached_memory(c10::Device device);

// The input on the model's device, moved after its ids have been checked on the CPU; a mask of real tokens
// alone becomes undefined. On the CPU the input itself. Throws as Model::check.
ModelInput placed(const Model& model, ModelInput input);

} // namespace hydrascope
