// What `hydrascope run` tells of heads: those like one of them, and the deletion curve.
#pragma once

#include <iosfwd>

#include <nlohmann/json.hpp>

#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// Distances by layer and head, null where undefined, and the ten nearest.
nlohmann::ordered_json similar_heads_json(const SimilarHeads& similar);
// Steps, shares, and for each order values, probabilities and the area under them.
nlohmann::ordered_json deletion_json(const DeletionResult& deletion);

// The same for people.
void print_similar_heads(std::ostream& out, const SimilarHeads& similar);
void print_deletion(std::ostream& out, const DeletionResult& deletion);

} // namespace hydrascope::app
