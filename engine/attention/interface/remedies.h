// What LibTorch throws when a piece of work fails, as errors of the program. Plain header.
#pragma once

#include <string>

namespace hydrascope {

// Why a piece of work failed.
struct Failure {
  enum class Kind { memory, device_memory, broken_device, other };
  Kind kind = Kind::other;
  std::string reason; // "out of memory", "out of memory on cuda:0", or the first line of LibTorch's message
};

// For a catch block: classifies the current exception of LibTorch, oneDNN or the memory, and rethrows any
// other. `device`: of the work, as on the command line.
Failure caught_failure(const std::string& device);

// What an error says besides the reason.
struct Remedies {
  std::string subject;
  std::string memory;             // the remedy where memory does not suffice
  std::string device_memory = {}; // … that of a device; empty: `memory`
  std::string other;              // the remedy for any other error
  std::string device = "cpu";     // of the work, as on the command line
};

// For a catch block: throws BrokenDevice or Error for what caught_failure() classifies, and rethrows any
// other exception.
[[noreturn]] void throw_with_remedy(const Remedies& remedies);

// Calls `work`, and throws its errors as throw_with_remedy() does.
template <typename Work>
auto with_remedies(const Remedies& remedies, const Work& work) {
  try {
    return work();
  } catch (...) {
    throw_with_remedy(remedies);
  }
}

} // namespace hydrascope
