// An allocator in place of this program's that can be made to fail once: every allocation of the program, of
// LibTorch and of other libraries goes through it (tests/allocation/failing_allocator.cpp), and on to
// jemalloc.
#pragma once

#include <cstdint>
#include <limits>

namespace hydrascope::test {

// While it lives, the allocations of its own thread are counted, and the one with this number, from 0, fails
// as if there were no memory.
class FailingAllocation {
public:
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

  explicit FailingAllocation(std::int64_t number);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  std::int64_t allocations() const; // so far
  // Whether the chosen one has been reached and has not failed, as it is one of those that end a program and
  // are not its own.
  bool left_out() const;
};

} // namespace hydrascope::test
