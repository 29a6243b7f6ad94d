#include "engine/base/picture_memory.h"

#include <cstdlib>
#include <utility>

namespace hydrascope {
namespace {

PictureMemory*& current() {
  thread_local PictureMemory* memory = nullptr;
  return memory;
}

} // namespace

PictureMemory::PictureMemory(const std::size_t most) : most_(most), before_(std::exchange(current(), this)) {}

// NOLINTBEGIN(cppcoreguidelines-no-malloc): stb_image wants what realloc() does
PictureMemory::~PictureMemory() {
  current() = before_;
  for (void* const memory : taken_) std::free(memory);
}

// Zeros: tables that a file uses without defining them are read.
void* PictureMemory::allocate(const std::size_t bytes) {
  PictureMemory& own = *current();
  void* const memory = bytes > own.most_ ? nullptr : std::calloc(bytes, 1);
  if (memory != nullptr) own.taken_.insert(memory);
  return memory;
}

void* PictureMemory::reallocate(void* const memory, const std::size_t bytes) {
  PictureMemory& own = *current();
  void* const moved = bytes > own.most_ || bytes == 0 ? nullptr : std::realloc(memory, bytes);
  if (moved == nullptr) return nullptr;
  own.taken_.erase(memory);
  own.taken_.insert(moved);
  return moved;
}

void PictureMemory::release(void* const memory) {
  if (current()->taken_.erase(memory) > 0) std::free(memory); // stb_image frees some memory twice
}
// NOLINTEND(cppcoreguidelines-no-malloc)

} // namespace hydrascope
