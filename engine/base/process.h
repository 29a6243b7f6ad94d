// The process: its environment, its memory, and waiting.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

namespace hydrascope {

// The value of an environment variable; "" if it is not set.
std::string environment(const char* name);

// Returns after `duration`, or at once when a stop is requested.
void sleep_for(std::chrono::milliseconds duration, const std::stop_token& stop);

// The process's largest resident set since its start or the last reset, in bytes, with what the allocator
// keeps of freed memory; 0 where the system does not report it.
std::int64_t peak_resident_bytes();
// Makes the present resident set the largest so far. Returns whether the system allows it. What measures the
// process from outside (VmHWM, ru_maxrss) sees the peak since then, too.
bool reset_peak_resident_bytes();
// Memory available without swapping, in bytes, to the system and within the process's control groups; 0 where
// the system does not report it. Lacks what the allocator keeps of freed memory (release_freed_memory()).
std::int64_t available_bytes();
// What the limits of the process's control groups (Linux's cgroups, version 1 or 2) and of those above them
// leave, in bytes, at least 1; nullopt without a limit. `membership` and `root`: where the system lists them.
std::optional<std::int64_t> control_group_bytes(const std::filesystem::path& membership = "/proc/self/cgroup",
                                                const std::filesystem::path& root = "/sys/fs/cgroup");
// Returns freed memory to the system. Until then the allocator keeps it for the next tensors: call it when
// nothing has been computed for a while.
void release_freed_memory();

} // namespace hydrascope
