// Which results stand beside each other where A and B are compared. Pure state.
#pragma once

#include <array>

#include "app/jobs/results.h"

namespace hydrascope::app {

// Chooses results of A and B that are of one state of the document: between the deliveries of a run for both,
// the last such pair, so that no panel shows A's new input beside B's old one, or subtracts the two.
class SidePair {
public:
  // The results to be shown, which live until the next call. `both`: both sides run; else each has its own.
  // Where one will not come, since its run failed or was cancelled, the other's stand without it.
  std::array<const SideResults*, 2> choose(bool both, const SideResults& a, const SideResults& b);

private:
  std::array<SideResults, 2> last_; // the last pair; empty if there is none
  std::array<SideResults, 2> without_results_;
};

} // namespace hydrascope::app
