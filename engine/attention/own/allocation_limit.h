// A limit on what the CPU's tensors of one thread may allocate.
#pragma once

#include <cstddef>

namespace hydrascope {

// While it exists, LibTorch's allocations on the CPU by this thread fail with c10::OutOfMemoryError once they
// add up to more than `bytes`, freed ones included: what they add up to bounds the time, too. Limits nest;
// the inner one counts alone.
class AllocationLimit {
public:
  explicit AllocationLimit(std::size_t bytes);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;

  // Counts memory that is no tensor's against the present thread's limit, if there is one. Throws as an
  // allocation does.
  static void count_others(std::size_t bytes);

  bool exceeded() const;

private:
  std::size_t outer_;
  bool outer_exceeded_;
};

} // namespace hydrascope
