// The sequences of associative recall, each a function of the seed, its part and its index.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/training/tasks/recall.h"

namespace hydrascope::training {

enum class RecallPart { training, validation, test };

struct RecallSequence {
  std::vector<std::int64_t> tokens; // N: pairs of key and value; the last pair's key has occurred before
  // Positions of the values whose key has occurred before, ascending; the last is N − 1.
  std::vector<std::int64_t> recalled;
};

RecallSequence recall_sequence(const RecallTask& task, std::uint64_t seed, RecallPart part,
                               std::int64_t index);

} // namespace hydrascope::training
