#include "engine/training/data/batches.h"

#include <algorithm>
#include <cmath>

#include "engine/training/data/random.h"

namespace hydrascope::training {

std::int64_t held_out_count(const std::int64_t count, const double share) {
  if (count < 2) return 0;
  return std::clamp<std::int64_t>(std::llround(share * static_cast<double>(count)), 1, count - 1);
}

ItemSplit split_items(const std::int64_t count, const double share, const std::uint64_t key) {
  const Items order = shuffled(count, key);
  const auto middle = order.begin() + held_out_count(count, share);
  return {{order.begin(), middle}, {middle, order.end()}};
}

std::vector<Items> cut(const Items& items, const int size) {
  std::vector<Items> batches;
  for (auto begin = items.begin(); begin != items.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(size, items.end() - begin);
    batches.emplace_back(begin, end);
    begin = end;
  }
  return batches;
}

std::vector<Items> cut_by_length(Items items, const int size,
                                 const std::function<std::int64_t(std::int64_t item)>& length) {
  std::ranges::stable_sort(items, {}, length);
  return cut(items, size);
}

} // namespace hydrascope::training
