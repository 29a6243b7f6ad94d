// Which results stand beside each other where A and B are compared. Pure state.
#pragma once

#include <array>

#include "app/document/document.h"
#include "app/jobs/results.h"

namespace hydrascope::app {

// Chooses results of A and B that are of one state of the document: between the deliveries of a run for both,
// the last such pair, so that no panel shows A's new input beside B's old one, or subtracts the two.
class SidePair {
public:
  // The results to be shown, which live until the next call, or as long as `a` and `b`. Where one side's will
  // not come, since its run failed or was cancelled, the other's stand without them.
  std::array<const SideResults*, 2> choose(Shown shown, const SideResults& a, const SideResults& b);

private:
  std::array<SideResults, 2> last_; // the last pair, or one side of it alone; empty if there is none
  SideResults nothing_;             // stays empty
};

} // namespace hydrascope::app
