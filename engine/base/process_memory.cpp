#include <fstream>
#include <limits>
#include <string>

#include <jemalloc/jemalloc.h>

#include "engine/base/process.h"

// jemalloc's settings, read when the program is loaded (declared in jemalloc.h); the environment's
// MALLOC_CONF overrides them.
//   dirty_decay_ms:-1, thp:always  Keeps freed memory, in huge pages. Making the memory of a tensor of many
//       megabytes anew took up to ten times as long as computing it. (Decay would take the oldest block again
//       and again, however slow it is. glibc's allocator seldom finds a kept block that is aligned as
//       LibTorch asks.)
//   narenas:1  One arena for all threads: memory that a thread has freed is not reused by threads of another
//       arena, so that with several the process holds the sum of its threads' peaks.
//   lg_extent_max_active_fit:12  Cuts blocks up to 2^12 times smaller from a kept one (64 times by default).
//       Freed blocks grow together to gigabytes, and texts of ever new lengths took new memory, 6 GB a
//       minute. Without a limit the smallest blocks would split the largest.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
const char* malloc_conf =
    "narenas:1,thp:always,oversize_threshold:0,dirty_decay_ms:-1,lg_extent_max_active_fit:12";

namespace hydrascope {
namespace {

// The value of the field `name` in a file of "Name:   123 kB" lines, in bytes.
std::int64_t kilobytes_field(const char* file, const std::string& name) {
  std::ifstream lines(file);
  std::string field;
  while (lines >> field) {
    if (field == name) {
      std::int64_t kilobytes = 0;
      lines >> kilobytes;
      return kilobytes * 1024;
    }
    lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

} // namespace

std::int64_t peak_resident_bytes() { return kilobytes_field("/proc/self/status", "VmHWM:"); }

void release_freed_memory() {
  static const std::string all = "arena." + std::to_string(MALLCTL_ARENAS_ALL) + ".purge";
  mallctl(all.c_str(), nullptr, nullptr, nullptr, 0);
}

std::int64_t available_bytes() { return kilobytes_field("/proc/meminfo", "MemAvailable:"); }

} // namespace hydrascope
