// Deletion curves. Plain header.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// The caveat below every deletion curve.
inline constexpr const char* deletion_note =
    "a weight is not an explanation: this tests whether the model needs what the map marks";

struct MeasuredDeletion {
  const RunResult* run = nullptr;
  const DeletionResult* deletion = nullptr;
};

struct DeletionView {
  LinesPanel lines;               // tokens hidden in the map's order, in reverse, at random
  std::vector<std::string> areas; // under the curves
};

// `probability`: plot the probability of the target's class, if the target is one, instead of its value.
// `side`: "A", "B" or empty.
DeletionView deletion_view(const MeasuredDeletion& measured, bool probability, const std::string& side);

// One panel per run on one scale; the subtitle has the areas and the note.
Figure deletion_figure(std::span<const MeasuredDeletion> measured, bool probability);

} // namespace hydrascope::app
