// The process: its environment, its memory, and waiting.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

namespace hydrascope {

// The value of an environment variable; "" if it is not set.
std::string environment(const char* name);

// Returns after `duration`, or at once when a stop is requested.
void sleep_for(std::chrono::milliseconds duration, const std::stop_token& stop);

// The process's largest resident set so far, in bytes; 0 where the system does not report it.
std::int64_t peak_resident_bytes();
// Memory available without swapping, in bytes; 0 where the system does not report it.
std::int64_t available_bytes();
// Returns freed memory to the system. Until then the allocator keeps it for the next tensors: call it when
// nothing has been computed for a while.
void release_freed_memory();

} // namespace hydrascope
