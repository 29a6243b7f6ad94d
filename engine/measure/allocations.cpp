#include "engine/measure/allocations.h"

#include <algorithm>

#include <c10/core/Allocator.h>

namespace hydrascope {

// The allocator reports to whoever sits in the profiler's place.
class AllocationMeter::Count final : public c10::MemoryReportingInfoBase {
public:
  void reportMemoryUsage(void*, const std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    held_ += bytes;
    peak_ = std::max(peak_, held_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t peak() const { return peak_; }

private:
  std::int64_t held_ = 0, peak_ = 0;
};

AllocationMeter::AllocationMeter()
    : count_(std::make_shared<Count>()), guard_(c10::DebugInfoKind::PROFILER_STATE, count_) {}
AllocationMeter::~AllocationMeter() = default;

std::int64_t AllocationMeter::peak_bytes() const { return count_->peak(); }

} // namespace hydrascope
