#include "engine/run/execution.h"

#include <ATen/Parallel.h>

#include "engine/attention/interface/device.h"
#include "engine/base/error.h"

namespace hydrascope {

void check_device(const std::string& device) {
  if (!device_of(device).is_cpu())
    throw Error("--device " + device, "models do not run on a GPU yet", "use --device cpu");
}

KernelSpec seeded(KernelSpec spec, std::uint64_t seed) {
  if (seed != 0 && kernel_info(spec.name).parameter("seed") != nullptr)
    spec.parameters.try_emplace("seed", std::to_string(seed));
  return spec;
}

ThreadCount::ThreadCount(int threads) : before_(at::get_num_threads()) {
  if (threads > 0 && threads != before_) at::set_num_threads(threads);
}

ThreadCount::~ThreadCount() {
  if (at::get_num_threads() != before_) at::set_num_threads(before_);
}

} // namespace hydrascope
