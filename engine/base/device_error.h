// What the messages of a device's errors mean. Plain header.
#pragma once

#include <algorithm>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace hydrascope {

// Whether CUDA reports the error with every call that follows in this process: its messages of the errors
// after which "the process must be terminated and relaunched" (CUDA Runtime API, cudaError_t), with or
// without what LibTorch puts before them.
inline bool lasts_until_restart(const std::string_view message) {
  constexpr std::string_view lasting[] = {"illegal memory access",   "unspecified launch failure",
                                          "device-side assert",      "ECC error",
                                          "misaligned address",      "illegal instruction",
                                          "invalid program counter", "hardware stack error",
                                          "address space",           "launch timed out"};
  return std::ranges::any_of(lasting,
                             [&](const std::string_view part) { return contains_any_case(message, part); });
}

// Whether a GPU's memory does not suffice: messages of CUDA and of its libraries, as cuBLAS. LibTorch's own
// allocator throws a kind of its own (c10::OutOfMemoryError).
inline bool lacks_device_memory(const std::string_view message) {
  return message.starts_with("CUDA error: out of memory") ||
         contains_any_case(message, "_STATUS_ALLOC_FAILED");
}

// Whether the machine's memory does not suffice: the message of LibTorch's allocator for the CPU.
inline bool lacks_host_memory(const std::string_view message) {
  return message.find("DefaultCPUAllocator: can't allocate memory") != std::string_view::npos;
}

// An error after which nothing works on the device before the program is restarted. Loops that continue after
// the error of one item stop at this one.
class BrokenDevice : public Error {
public:
  BrokenDevice(const std::string_view subject, const std::string_view reason)
      : Error(subject, reason, "restart the program: the device refuses all further work of this one") {}
};

} // namespace hydrascope
