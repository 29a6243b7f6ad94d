// One process's part of work that several processes do together. Plain header: what measures or trains knows
// nothing of networks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace hydrascope {

// Items [first, first + count).
struct ItemRange {
  std::int64_t first = 0, count = 0;
  std::int64_t end() const { return first + count; }
};

// Contiguous pieces in the order of the ranks, their sizes differing by one at most: the first count mod size
// ranks take one item more. Empty where there are fewer items than ranks.
ItemRange share_of(std::int64_t count, int rank, int size);

// All members are called by every process, in the same order and with the same number of values.
struct DataShare {
  using Reduction = std::function<void(std::span<double>)>;

  int rank = 0, size = 1;
  Reduction sum;      // value by value over the processes, in place; not needed alone
  Reduction smallest; // likewise
};

} // namespace hydrascope
