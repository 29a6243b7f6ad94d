// Deletion curves as lines, in the window and in exported figures alike. Plain header.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// What a deletion curve does not say.
inline constexpr const char* deletion_note =
    "a weight is not an explanation: this tests whether the model needs what the map marks";

struct MeasuredDeletion {
  const RunResult* run = nullptr;
  const DeletionResult* deletion = nullptr;
};

struct DeletionView {
  LinesPanel lines;               // the map's order, its reverse, a random one
  std::vector<std::string> areas; // under each of them
};

// `probability`: of the target's class, where it is one; else the target's own value. `side`: "A", "B" or
// empty.
DeletionView deletion_view(const MeasuredDeletion& measured, bool probability, const std::string& side);

// One panel for each run, with the areas and the note in the subtitle.
Figure deletion_figure(std::span<const MeasuredDeletion> measured, bool probability);

} // namespace hydrascope::app
