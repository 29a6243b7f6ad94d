#include "tests/support/fake_device_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include <c10/util/Exception.h>

namespace hydrascope::test {

DeviceMemory& DeviceMemory::instance() {
  static auto* const memory = new DeviceMemory; // tensors may outlive static objects
  return *memory;
}

void* DeviceMemory::allocate(const std::size_t bytes) {
  constexpr std::size_t page_bytes = 4096;
  const std::size_t whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  TORCH_CHECK_WITH(OutOfMemoryError, whole <= free_bytes(), "out of memory on the fake device");
  void* const pages = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TORCH_CHECK(pages != MAP_FAILED, "no memory for the fake device on the host");
  const std::scoped_lock lock(mutex_);
  blocks_[pages] = {whole, 0};
  used_ += whole;
  most_ = std::max(most_, used_);
  return pages;
}

void DeviceMemory::release(void* const pages) {
  const std::scoped_lock lock(mutex_);
  const auto block = blocks_.find(pages);
  if (block == blocks_.end()) return;
  munmap(pages, block->second.bytes);
  used_ -= block->second.bytes;
  blocks_.erase(block);
}

std::size_t DeviceMemory::free_bytes() {
  const std::scoped_lock lock(mutex_);
  return limit_ > used_ ? limit_ - used_ : 0;
}

void DeviceMemory::limit_free(const std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  limit_ = used_ + bytes;
}

void DeviceMemory::remove_limit() {
  const std::scoped_lock lock(mutex_);
  limit_ = total_bytes;
}

std::pair<std::size_t, std::size_t> DeviceMemory::used() {
  const std::scoped_lock lock(mutex_);
  return {used_, most_};
}

void DeviceMemory::reset_peak() {
  const std::scoped_lock lock(mutex_);
  most_ = used_;
}

void DeviceMemory::change(void* const pages, const int users) {
  const std::scoped_lock lock(mutex_);
  const auto block = blocks_.find(pages);
  if (block == blocks_.end()) return;
  const bool was_open = block->second.users > 0;
  block->second.users += users;
  const bool is_open = block->second.users > 0;
  if (is_open != was_open) mprotect(pages, block->second.bytes, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

} // namespace hydrascope::test
