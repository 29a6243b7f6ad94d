#include "engine/training/tasks/running_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/training/data/sampling.h"

namespace hydrascope::training {
namespace {

constexpr int shortest_piece = 4;

} // namespace

ChunkLengths checked_chunk(const ChunkLengths& asked, const ModelInfo& model) {
  if (asked.most == 0 && model.causal) return {0, std::min(default_piece, model.max_tokens)};
  if (asked.most > 0 && (asked.most < shortest_piece || asked.most > model.max_tokens || asked.least < 0 ||
                         asked.least > asked.most))
    throw UsageError("--chunk", fmt::format("must lie between {} and {}", shortest_piece, model.max_tokens),
                     "write it as 512, or 16-256 for pieces of many lengths");
  return asked;
}

std::int64_t drawn_length(const ChunkLengths& chunk, const double draw) {
  if (chunk.least == 0 || chunk.least == chunk.most) return chunk.most;
  const double least = std::log(std::max(shortest_piece, chunk.least)), most = std::log(chunk.most);
  return std::lround(std::exp(least + (most - least) * draw));
}

std::vector<TokenIds> running_pieces(const TokenIds& text, const ChunkLengths& chunk, const int limit,
                                     const std::uint64_t seed) {
  std::vector<TokenIds> pieces;
  const auto all = static_cast<std::int64_t>(text.size());
  for (std::int64_t first = 0; first < all && (limit == 0 || std::ssize(pieces) < limit);) {
    const std::int64_t length = drawn_length(chunk, unit(mix({seed, 6, static_cast<std::uint64_t>(first)})));
    const std::int64_t end = std::min(all, first + length);
    if (end - first == length || pieces.empty())
      pieces.emplace_back(text.begin() + first, text.begin() + end);
    first = end;
  }
  return pieces;
}

std::vector<TokenIds> pieces_of_files(const Model& model, const std::vector<std::filesystem::path>& files,
                                      const ChunkLengths& chunk, const int limit, const std::uint64_t seed) {
  std::vector<TokenIds> all;
  for (const auto& file : files) {
    std::vector<TokenIds> pieces = running_pieces(running_text(model, file), chunk, limit, seed);
    if (pieces.empty()) throw Error(file.string(), "holds no text", "name another file");
    std::ranges::move(pieces, std::back_inserter(all));
  }
  return all;
}

} // namespace hydrascope::training
