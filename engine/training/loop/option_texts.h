// Options of a training that are texts on the command line and in the window's form. Plain header.
#pragma once

#include <string>
#include <vector>

#include "engine/training/loop/training.h"

namespace hydrascope {

// "8-9,10-11.attention,head" ⇄ which parameters to train. Throws UsageError.
TrainedParts parse_trained_parts(const std::string& text);
std::string trained_parts_text(const TrainedParts& parts);

// "rank=8,alpha=16" ⇄ a low-rank update, either left out as in the type. Throws UsageError.
LowRank parse_low_rank(const std::string& text);
std::string low_rank_text(const LowRank& update);

// "512" ⇄ {0, 512}, "16-256" ⇄ {16, 256}; empty: {0, 0}. Throws UsageError.
ChunkLengths parse_chunk_lengths(const std::string& text);
std::string chunk_lengths_text(const ChunkLengths& chunk);

// A comma list, or a file with a name a line (of several columns parted by tabs the first). Throws
// UsageError, Error.
std::vector<std::string> names_or_file(const std::string& text, const std::string& option);

} // namespace hydrascope
