#include "engine/runtime/process_memory.h"

#include <fstream>
#include <limits>
#include <string>

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

} // namespace hydrascope
