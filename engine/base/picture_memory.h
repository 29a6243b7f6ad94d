// The memory that stb_image takes, and what it does where a file breaks its assumptions.
#pragma once

#include <cstddef>
#include <unordered_set>

namespace hydrascope {

// Thrown through stb_image in place of a failed assertion.
struct PictureFault {};

// While it lives, stb_image's memory on this thread comes from here, and is freed with it.
class PictureMemory {
public:
  // Allocations of more than `most` bytes fail, which stb_image reports: files can announce more than they
  // hold.
  explicit PictureMemory(std::size_t most);
  ~PictureMemory();
  PictureMemory(const PictureMemory&) = delete;
  PictureMemory& operator=(const PictureMemory&) = delete;

  void set_most(std::size_t bytes) { most_ = bytes; }

  // As malloc(), realloc() and free(), of the thread's memory.
  static void* allocate(std::size_t bytes);
  static void* reallocate(void* memory, std::size_t bytes);
  static void release(void* memory);

private:
  std::size_t most_;
  PictureMemory* before_; // the thread's, which it is again afterwards
  std::unordered_set<void*> taken_;
};

} // namespace hydrascope
