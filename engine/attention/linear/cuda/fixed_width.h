// Launches of fixed_width_keys.cu and fixed_width_queries.cu: linear attention by kernels for one width of
// heads. They take the place of steps 1. to 3. and of 4. of linear_programs.h, with the same workspace.
#pragma once

#include <cuda_runtime.h>

#include "engine/attention/linear/cuda/linear.h"

namespace hydrascope::cuda {

// Whether the sums over keys, and the outputs of queries, are taken: heads of 64 features with Hedgehog's map
// [e^y, e^−y], y of 64 entries, in a half type, whose rows begin at multiples of 16 bytes.
bool fixed_width_takes_keys(const LinearArguments& a);
bool fixed_width_takes_queries(const LinearArguments& a);

// After these, `a.workspace` is as after sums_over_keys() of linear_device.cuh; the counter is not set.
cudaError_t fixed_width_keys(const LinearArguments& a, cudaStream_t stream);
cudaError_t fixed_width_queries(const LinearArguments& a, cudaStream_t stream);

} // namespace hydrascope::cuda
