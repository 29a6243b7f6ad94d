#include "app/jobs/side_pair.h"

#include <algorithm>
#include <cstddef>

namespace hydrascope::app {

namespace {

bool will_come(const SideResults& results) { return !results.cancelled && results.error.empty(); }

} // namespace

std::array<const SideResults*, 2> SidePair::choose(const Shown shown, const SideResults& a,
                                                   const SideResults& b) {
  const std::array<const SideResults*, 2> newest{&a, &b};
  if (shown == Shown::a || (a.any() == nullptr && b.any() == nullptr)) { // one side, or another model
    last_ = {};
    return newest;
  }
  if (a.fresh && b.fresh) {
    last_ = {a, b};
    return newest;
  }
  const bool one_is_fresh = a.fresh || b.fresh;
  const bool has_pair = last_[0].any() != nullptr && last_[1].any() != nullptr;
  if (one_is_fresh && !(has_pair && will_come(a.fresh ? b : a))) {
    const std::size_t fresh = a.fresh ? 0 : 1, other = 1 - fresh;
    last_[fresh] = *newest[fresh];
    last_[other] = {};
    last_[other].error = newest[other]->error;
    last_[other].cancelled = newest[other]->cancelled;
    if (b.fresh) return {&last_[0], &b};
    // B alone on the screen keeps what it showed, and A's are not beside it.
    if (shown == Shown::b) return {&nothing_, &b};
    return {&a, &last_[1]};
  }
  if (last_[0].any() == nullptr && last_[1].any() == nullptr) return newest;
  for (std::size_t side = 0; side < last_.size(); ++side) {
    last_[side].stale = a.stale || b.stale; // together they are of an earlier state
    last_[side].stale_seconds = std::max(a.stale_seconds, b.stale_seconds);
    last_[side].error = newest[side]->error;
    last_[side].cancelled = newest[side]->cancelled;
  }
  return {last_.data(), &last_[1]};
}

} // namespace hydrascope::app
