#include "engine/base/device_error.h"

#include <string>

#include <gtest/gtest.h>

namespace hydrascope {
namespace {

// As cudaGetErrorString words them.
TEST(DeviceError, OfWhichNothingRecoversAsksForARestart) {
  for (const char* const message :
       {"an illegal memory access was encountered", "unspecified launch failure",
        "device-side assert triggered", "uncorrectable ECC error encountered", "misaligned address",
        "an illegal instruction was encountered", "invalid program counter", "hardware stack error",
        "operation not supported on global/shared address space", "the launch timed out and was terminated"})
    for (const char* const before : {"", "CUDA error: "}) {
      const std::string remedy = remedy_for(std::string(before) + message, "try a smaller input");
      EXPECT_EQ(remedy.find("restart the program"), 0U) << before << message << ": " << remedy;
    }
}

TEST(DeviceError, OfAnotherKindKeepsTheRemedyOfTheCommand) {
  for (const char* const message :
       {"CUDA error: invalid argument", "CUDA error: invalid configuration argument",
        "CUDA error: out of memory", "expected a tensor of 3 dimensions, found 2", ""})
    EXPECT_EQ(remedy_for(message, "try a smaller input"), "try a smaller input") << message;
}

} // namespace
} // namespace hydrascope
