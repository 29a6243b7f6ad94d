// Items of a training: which are held out, and which stand together in a batch. Plain header.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace hydrascope::training {

using Items = std::vector<std::int64_t>;

// How many of `count` items a share is: one at least and never all; of fewer than two none.
std::int64_t held_out_count(std::int64_t count, double share);

// 0 … count−1 in two parts, chosen by `key`.
struct ItemSplit {
  Items held_out, training;
};
ItemSplit split_items(std::int64_t count, double share, std::uint64_t key);

// In the order given, `size` in each; the last may hold fewer.
std::vector<Items> cut(const Items& items, int size);
// Items of like length together, the shortest first, so that little of a batch is padding.
std::vector<Items> cut_by_length(Items items, int size,
                                 const std::function<std::int64_t(std::int64_t item)>& length);

} // namespace hydrascope::training
