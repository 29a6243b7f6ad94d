// What LibTorch's CPU allocator hands out while something runs.
#pragma once

#include <cstdint>
#include <memory>

#include <c10/util/ThreadLocalDebugInfo.h>

namespace hydrascope {

// Counts the tensors' memory that the calling thread takes, from its making on. One at a time in a thread.
class AllocationMeter {
public:
  AllocationMeter();
  ~AllocationMeter();
  AllocationMeter(const AllocationMeter&) = delete;
  AllocationMeter& operator=(const AllocationMeter&) = delete;

  // The most bytes held at once beyond those held at the beginning.
  std::int64_t peak_bytes() const;

private:
  class Count;
  std::shared_ptr<Count> count_;
  c10::DebugInfoGuard guard_;
};

} // namespace hydrascope
