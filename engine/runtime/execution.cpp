#include "engine/runtime/execution.h"

#include <ATen/Parallel.h>

#include "engine/attention/cuda_plugin.h"
#include "engine/plain/error.h"

namespace hydrascope {

void check_device(const std::string& device) {
  if (device == "auto" || device == "cpu") return;
  if (device == "cuda" || device.starts_with("cuda:")) {
    const CudaStatus& cuda = cuda_status();
    throw Error("--device " + device, cuda.available ? "models do not run on a GPU yet" : cuda.reason,
                "use --device cpu");
  }
  throw UsageError("--device " + device, "unknown device", "use auto, cpu, cuda or cuda:0");
}

KernelSpec seeded(KernelSpec spec, std::uint64_t seed) {
  if (seed != 0 && kernel_info(spec.name).parameter("seed") != nullptr)
    spec.parameters.try_emplace("seed", std::to_string(seed));
  return spec;
}

ThreadCount::ThreadCount(int threads) : before_(at::get_num_threads()) {
  if (threads > 0) at::set_num_threads(threads);
}

ThreadCount::~ThreadCount() { at::set_num_threads(before_); }

} // namespace hydrascope
