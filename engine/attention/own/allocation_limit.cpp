#include "engine/attention/own/allocation_limit.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

namespace hydrascope {
namespace {

// Of this thread.
double processor_seconds() {
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// LibTorch's own allocator with the present thread's limit.
class LimitedAllocator final : public c10::Allocator {
public:
  explicit LimitedAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(const std::size_t bytes) override {
    AllocationLimit::count(bytes);
    try {
      return inner_->allocate(bytes);
    } catch (...) {
      AllocationLimit::note_failure();
      throw;
    }
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

AllocationLimit::AllocationLimit(const std::size_t bytes, const double seconds)
    : outer_(std::exchange(limit_of_this_thread(),
                           {.bytes_left = bytes,
                            .end = std::min(processor_seconds() + seconds, limit_of_this_thread().end)})) {}

AllocationLimit::~AllocationLimit() { limit_of_this_thread() = outer_; }

AllocationLimit::Limit& AllocationLimit::limit_of_this_thread() {
  thread_local Limit limit;
  return limit;
}

void AllocationLimit::count(const std::size_t bytes) {
  constexpr std::size_t unlimited = Limit{}.bytes_left;
  Limit& limit = limit_of_this_thread();
  if (limit.bytes_left == unlimited) return;
  if (bytes > limit.bytes_left) {
    limit.exceeded = true;
    C10_THROW_ERROR(OutOfMemoryError, "too much memory");
  }
  limit.bytes_left -= bytes;
  check_time();
}

void AllocationLimit::note_failure() { limit_of_this_thread().no_memory = true; }

void AllocationLimit::count_products(const double number) {
  constexpr double seconds_of_product = 1e-9;
  Limit& limit = limit_of_this_thread();
  if (!std::isfinite(limit.end) || processor_seconds() + seconds_of_product * number <= limit.end) return;
  limit.late = true;
  C10_THROW_ERROR(Error, "too much time");
}

// NOLINTBEGIN(readability-convert-member-functions-to-static): of this object's thread
bool AllocationLimit::exceeded() const { return limit_of_this_thread().exceeded; }
bool AllocationLimit::late() const { return limit_of_this_thread().late; }
bool AllocationLimit::no_memory() const { return limit_of_this_thread().no_memory; }
// NOLINTEND(readability-convert-member-functions-to-static)

} // namespace hydrascope
