#include "engine/runtime/process_memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#ifdef __GLIBC__ // which the headers above say
  #include <malloc.h>
#endif

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
std::int64_t available_bytes() { return kilobytes_field("/proc/meminfo", "MemAvailable:"); }

void keep_large_blocks() {
#ifdef __GLIBC__
  const std::int64_t share = kilobytes_field("/proc/meminfo", "MemTotal:") / 8;
  const auto most = static_cast<int>(std::min<std::int64_t>(share, std::numeric_limits<int>::max()));
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") == nullptr) mallopt(M_TRIM_THRESHOLD, most);
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") == nullptr) mallopt(M_MMAP_THRESHOLD, most);
#endif
  setenv("THP_MEM_ALLOC_ENABLE", "1", 0); // LibTorch's own switch
}

} // namespace hydrascope
