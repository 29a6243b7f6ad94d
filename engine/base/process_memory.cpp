#include "engine/base/process_memory.h"

#include <fstream>
#include <limits>
#include <string>

#include <jemalloc/jemalloc.h>

// What jemalloc reads when the program is loaded; the environment's MALLOC_CONF comes after it. It is
// declared so in jemalloc.h. What is freed is kept, in huge pages: the memory of a tensor of many megabytes
// is then not made anew every time, which took up to ten times as long as computing it. (Decay would take the
// oldest block again and again, however slow. glibc's own allocator, told to keep blocks, seldom finds one
// that is aligned as LibTorch asks.) One arena for all threads: with one for every few of them, what a thread
// has freed no other finds, and an hour of work holds what its threads held at most, each. Up to 2^12 times
// smaller blocks are cut from what is kept, by itself jemalloc cuts 64 times smaller ones: what was freed
// grows together to gigabytes, and texts of ever other lengths took new memory, 6 GB a minute. With no limit
// at all, the smallest would sit in the midst of the largest.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
const char* malloc_conf =
    "narenas:1,thp:always,oversize_threshold:0,dirty_decay_ms:-1,lg_extent_max_active_fit:12";

namespace hydrascope {
namespace {

// The figure behind `name` in a file of "Name:   123 kB" lines.
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
void give_back_freed_memory() {
  static const std::string all = "arena." + std::to_string(MALLCTL_ARENAS_ALL) + ".purge";
  mallctl(all.c_str(), nullptr, nullptr, nullptr, 0);
}

std::int64_t available_bytes() { return kilobytes_field("/proc/meminfo", "MemAvailable:"); }

} // namespace hydrascope
