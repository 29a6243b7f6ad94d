// What to do about an error of a device. Plain header.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

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

// The remedy for LibTorch's error with this message: `otherwise` unless nothing works before a restart.
inline std::string remedy_for(const std::string_view message, const std::string_view otherwise) {
  return lasts_until_restart(message) ? "restart the program: the device refuses all further work of this one"
                                      : std::string(otherwise);
}

} // namespace hydrascope
