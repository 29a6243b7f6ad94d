// A decoder's data: running text in pieces.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/models/transformer/model.h"
#include "engine/run/inputs.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

// Tokens of a piece of running text where --chunk does not say: as many as distillation was tried with.
inline constexpr int default_piece = 256;

// The lengths of pieces for this model, which for decoders have a default. Throws UsageError naming --chunk.
ChunkLengths checked_chunk(const ChunkLengths& asked, const ModelInfo& model);

// A length from chunk.least to chunk.most, uniform on a logarithmic scale, as `draw` in [0, 1) says.
std::int64_t drawn_length(const ChunkLengths& chunk, double draw);

// A text in pieces of chunk.most tokens, or of lengths drawn by `seed`; `limit` > 0 takes the first ones.
// What is left at the end is dropped, unless there is nothing else.
std::vector<TokenIds> running_pieces(const TokenIds& text, const ChunkLengths& chunk, int limit,
                                     std::uint64_t seed);

// The pieces of whole files (running_text()), file after file; `limit` is of each. Throws Error (missing or
// empty file), UsageError (a model that reads no running text).
std::vector<TokenIds> pieces_of_files(const Model& model, const std::vector<std::filesystem::path>& files,
                                      const ChunkLengths& chunk, int limit, std::uint64_t seed);

} // namespace hydrascope::training
