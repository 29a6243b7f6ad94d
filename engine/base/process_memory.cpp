#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include <jemalloc/jemalloc.h>

#include "engine/base/process.h"
#include "engine/base/text.h"

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

namespace fs = std::filesystem;

// The number behind `name` in a file with a name and a number, perhaps with a unit, on each line; 0 without.
std::int64_t field_of(const fs::path& file, const std::string& name) {
  std::ifstream lines(file);
  std::string field;
  while (lines >> field) {
    if (field == name) {
      std::int64_t number = 0;
      lines >> number;
      return number;
    }
    lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

constexpr std::int64_t kilobyte = 1024;

// nullopt if the file is not there or holds a word: "max".
std::optional<std::int64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::int64_t number = 0;
  if (!(stream >> number)) return std::nullopt;
  return number;
}

// What a control group's own limit leaves. Pages of files count as used, but the kernel gives them up.
std::optional<std::int64_t> left_in_group(const fs::path& group, const bool version_1) {
  const auto limit = number_in(group / (version_1 ? "memory.limit_in_bytes" : "memory.max"));
  const auto used = number_in(group / (version_1 ? "memory.usage_in_bytes" : "memory.current"));
  if (!limit || !used) return std::nullopt;
  const std::string with_those_below = version_1 ? "total_" : "";
  const std::int64_t files = field_of(group / "memory.stat", with_those_below + "inactive_file") +
                             field_of(group / "memory.stat", with_those_below + "active_file");
  return std::max<std::int64_t>(*limit - std::max<std::int64_t>(*used - files, 0), 1);
}

} // namespace

std::int64_t peak_resident_bytes() { return kilobyte * field_of("/proc/self/status", "VmHWM:"); }

bool reset_peak_resident_bytes() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush; // proc(5)
  return file.good();
}

void release_freed_memory() {
  static const std::string all = "arena." + std::to_string(MALLCTL_ARENAS_ALL) + ".purge";
  mallctl(all.c_str(), nullptr, nullptr, nullptr, 0);
}

std::optional<std::int64_t> control_group_bytes(const fs::path& membership, const fs::path& root) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::int64_t least = none;
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) { // ID:CONTROLLERS:/PATH; version 2 lists no controllers
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version_1 = std::ranges::count(split(controllers, ','), std::string_view("memory")) > 0;
    if (!version_1 && !controllers.empty()) continue;
    const fs::path mount = version_1 ? root / "memory" : root;
    // In a container the path may be that outside of it, and only its last group is there: the mount itself.
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      least = std::min(least, left_in_group(mount / group, version_1).value_or(none));
      if (group.empty()) break;
    }
  }
  if (least == none) return std::nullopt;
  return least;
}

std::int64_t available_bytes() {
  const std::int64_t system = kilobyte * field_of("/proc/meminfo", "MemAvailable:");
  const std::optional<std::int64_t> groups = control_group_bytes();
  if (!groups) return system;
  return system > 0 ? std::min(system, *groups) : *groups;
}

} // namespace hydrascope
