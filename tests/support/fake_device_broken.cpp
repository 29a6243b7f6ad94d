// Linked into the program with the fake device: where the environment variable FAKE_DEVICE_BROKEN is set,
// hydra-cosine fails there as CUDA does after a kernel that has read memory of others.
#include <cstdlib>

#include "tests/engine/attention/broken_kernels.h"

namespace hydrascope::test {
namespace {

[[maybe_unused]] const bool broken = [] {
  if (std::getenv("FAKE_DEVICE_BROKEN") == nullptr) return false;
  static const testing_inputs::BrokenKernels kernels;
  return true;
}();

} // namespace
} // namespace hydrascope::test
