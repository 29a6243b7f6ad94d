#include "app/jobs/side_pair.h"

#include <cstddef>

namespace hydrascope::app {

namespace {

bool will_come(const SideResults& results) { return !results.cancelled && results.error.empty(); }

} // namespace

std::array<const SideResults*, 2> SidePair::choose(const bool both, const SideResults& a,
                                                   const SideResults& b) {
  const std::array<const SideResults*, 2> newest{&a, &b};
  if (!both || (a.any() == nullptr && b.any() == nullptr)) { // one side, or another model
    last_ = {};
    return newest;
  }
  if (a.fresh && b.fresh) {
    last_ = {a, b};
    return newest;
  }
  const bool one_is_fresh = a.fresh || b.fresh;
  const bool keeps = last_[0].any() != nullptr && (!one_is_fresh || will_come(a.fresh ? b : a));
  if (!keeps && !one_is_fresh) return newest;
  std::array<const SideResults*, 2> shown{};
  for (std::size_t side = 0; side < shown.size(); ++side) {
    const SideResults& now = *newest[side];
    if (!keeps && now.fresh) {
      shown[side] = &now;
      continue;
    }
    SideResults& other = keeps ? last_[side] : without_results_[side];
    other.stale = keeps && now.stale;
    other.stale_seconds = now.stale_seconds;
    other.error = now.error;
    other.cancelled = now.cancelled;
    shown[side] = &other;
  }
  return shown;
}

} // namespace hydrascope::app
