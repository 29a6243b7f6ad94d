// One process's share of work that several processes do together. Plain header: code that measures or trains
// knows nothing of networks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

namespace hydrascope {

// Items [first, first + count).
struct ItemRange {
  std::int64_t first = 0, count = 0;
  std::int64_t end() const { return first + count; }
};

// The items of one rank: contiguous ranges in the order of the ranks. The first `count` mod `size` ranks have
// one item more than the others; where there are fewer items than ranks, some have none.
inline ItemRange share_of(std::int64_t count, int rank, int size) {
  const std::int64_t least = count / size, more = count % size;
  return {rank * least + std::min<std::int64_t>(rank, more), least + (rank < more ? 1 : 0)};
}

// A rank and the reductions over all ranks. Every process calls them in the same order and with the same
// number of values.
struct DataShare {
  using Reduction = std::function<void(std::span<double>)>;

  int rank = 0, size = 1;
  Reduction sum;      // of each value over the processes, in place; may be empty where size is 1
  Reduction smallest; // likewise
};

} // namespace hydrascope
