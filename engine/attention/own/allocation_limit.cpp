#include "engine/attention/own/allocation_limit.h"

#include <limits>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

namespace hydrascope {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
struct Limit {
  std::size_t bytes_left = unlimited;
  bool refused = false;
};

Limit& limit_of_this_thread() {
  thread_local Limit limit;
  return limit;
}

void count_bytes(const std::size_t bytes) {
  Limit& limit = limit_of_this_thread();
  if (limit.bytes_left == unlimited) return;
  if (bytes > limit.bytes_left) {
    limit.refused = true;
    C10_THROW_ERROR(OutOfMemoryError, "too much memory");
  }
  limit.bytes_left -= bytes;
}

// LibTorch's own allocator with the present thread's limit.
class LimitedAllocator final : public c10::Allocator {
public:
  explicit LimitedAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(const std::size_t bytes) override {
    count_bytes(bytes);
    return inner_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, const std::size_t count) const override {
    inner_->copy_data(to, from, count);
  }

private:
  c10::Allocator* inner_;
};

bool install() {
  static LimitedAllocator limited(c10::GetCPUAllocator());
  constexpr std::uint8_t priority = 1; // above LibTorch's own
  c10::SetCPUAllocator(&limited, priority);
  return true;
}

// Before there are threads, which could read the allocator meanwhile.
[[maybe_unused]] const bool installed = install(); // NOLINT(cert-err58-cpp): if it throws, nothing can run

} // namespace

AllocationLimit::AllocationLimit(const std::size_t bytes)
    : outer_(limit_of_this_thread().bytes_left), outer_exceeded_(limit_of_this_thread().refused) {
  limit_of_this_thread() = {bytes, false};
}

AllocationLimit::~AllocationLimit() { limit_of_this_thread() = {outer_, outer_exceeded_}; }

void AllocationLimit::count_others(const std::size_t bytes) { count_bytes(bytes); }

bool AllocationLimit::exceeded() const {
  return limit_of_this_thread().refused;
} // NOLINT(readability-convert-member-functions-to-static): of this object's thread

} // namespace hydrascope
