// Memory that a process has had for a moment, past its allocator, which would keep it.
#pragma once

#include <cstddef>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hydrascope::test {

// Takes so many bytes, writes them and returns them to the system.
inline void touch_pages(const std::size_t bytes) {
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::memset(pages, 1, bytes);
  munmap(pages, bytes);
}

} // namespace hydrascope::test
