// What the command line and the window's form write about a training, read. Plain header.
#pragma once

#include <string>

#include "engine/training/training.h"

namespace hydrascope {

// "8-9,10-11.attention,head" → which parameters to train. Throws UsageError.
TrainedParts parse_trained_parts(const std::string& text);

// "rank=8,alpha=16" → a low-rank update, either left out as in the type. Throws UsageError.
LowRank parse_low_rank(const std::string& text);

// "512" → {0, 512}, "16-256" → {16, 256}; empty: {0, 0}. Throws UsageError.
struct ChunkLengths {
  int least = 0, most = 0;
};
ChunkLengths parse_chunk_lengths(const std::string& text);

} // namespace hydrascope
