// The memory of the fake device: the host's, inaccessible unless it is opened.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace hydrascope::test {

// Whole pages. Used by several threads.
class DeviceMemory {
public:
  static constexpr std::size_t total_bytes = std::size_t{4} << 30;

  static DeviceMemory& instance();

  // Throws c10::OutOfMemoryError beyond the limit.
  void* allocate(std::size_t bytes);
  void release(void* pages);

  // Opened as often as closed: views of one storage may be copied by several threads.
  void open(void* pages) { change(pages, 1); }
  void close(void* pages) { change(pages, -1); }

  std::size_t free_bytes();
  // Lets `bytes` more be allocated than are in use.
  void limit_free(std::size_t bytes);
  void remove_limit();
  // Bytes in use, and at most since the last reset_peak().
  std::pair<std::size_t, std::size_t> used();
  void reset_peak();

private:
  struct Block {
    std::size_t bytes = 0;
    int users = 0;
  };

  void change(void* pages, int users);

  std::mutex mutex_;
  std::map<void*, Block> blocks_;
  std::size_t used_ = 0, most_ = 0, limit_ = total_bytes;
};

} // namespace hydrascope::test
