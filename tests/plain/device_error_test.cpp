#include "engine/base/device_error.h"

#include <string>

#include <gtest/gtest.h>

namespace hydrascope {
namespace {

// As cudaGetErrorString words them.
TEST(DeviceError, OfWhichNothingRecoversLasts) {
  for (const char* const message :
       {"an illegal memory access was encountered", "unspecified launch failure",
        "device-side assert triggered", "uncorrectable ECC error encountered", "misaligned address",
        "an illegal instruction was encountered", "invalid program counter", "hardware stack error",
        "operation not supported on global/shared address space", "the launch timed out and was terminated"})
    for (const char* const before : {"", "CUDA error: "})
      EXPECT_TRUE(lasts_until_restart(std::string(before) + message)) << before << message;
}

TEST(DeviceError, OfAnotherKindDoesNotLast) {
  for (const char* const message :
       {"CUDA error: invalid argument", "CUDA error: invalid configuration argument",
        "CUDA error: out of memory", "expected a tensor of 3 dimensions, found 2", ""})
    EXPECT_FALSE(lasts_until_restart(message)) << message;
}

TEST(DeviceError, OfOneThatIsBrokenAsksForARestart) {
  EXPECT_EQ(std::string(BrokenDevice("run", "CUDA error: misaligned address").what())
                .find("run: CUDA error: misaligned address; restart the program"),
            0U);
}

TEST(DeviceError, OfMemoryIsOfTheDeviceOrOfTheMachine) {
  for (const char* const message :
       {"CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"}) {
    EXPECT_TRUE(lacks_device_memory(message)) << message;
    EXPECT_FALSE(lacks_host_memory(message)) << message;
  }
  const char* const of_machine =
      "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
      "allocate memory: you tried to allocate 4503599627370496 bytes.";
  EXPECT_TRUE(lacks_host_memory(of_machine));
  EXPECT_FALSE(lacks_device_memory(of_machine));
  for (const char* const message : {"CUDA error: invalid argument", "CUBLAS_STATUS_NOT_SUPPORTED", ""}) {
    EXPECT_FALSE(lacks_device_memory(message)) << message;
    EXPECT_FALSE(lacks_host_memory(message)) << message;
  }
}

} // namespace
} // namespace hydrascope
