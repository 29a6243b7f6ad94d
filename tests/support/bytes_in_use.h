// Memory that a program holds, without what its allocator keeps beside that.
#pragma once

#include <cstddef>
#include <cstdint>

#include <jemalloc/jemalloc.h>

namespace hydrascope::test {

inline std::size_t bytes_in_use() {
  std::uint64_t epoch = 1;
  std::size_t bytes = 0, size = sizeof bytes;
  mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch); // the numbers are those of the last epoch
  mallctl("stats.allocated", &bytes, &size, nullptr, 0);
  return bytes;
}

} // namespace hydrascope::test
