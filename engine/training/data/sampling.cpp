#include "engine/training/data/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace hydrascope::training {

std::uint64_t mix(const std::initializer_list<std::uint64_t> parts) {
  std::uint64_t state = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t part : parts) {
    state += part + 0x9e3779b97f4a7c15ULL;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
    state ^= state >> 31;
  }
  return state;
}

double unit(const std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

std::vector<std::int64_t> shuffled(const std::int64_t count, const std::uint64_t key) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = order.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(unit(mix({key, i})) * static_cast<double>(i));
    std::swap(order[i - 1], order[other]);
  }
  return order;
}

double symmetric_beta(const double alpha, const std::uint64_t key) {
  std::mt19937_64 generator(key);
  std::gamma_distribution<double> gamma(alpha, 1.0);
  const double first = gamma(generator);
  const double second = gamma(generator);
  return first + second > 0 ? first / (first + second) : 0.5;
}

std::int64_t held_out_count(const std::int64_t count, const double share) {
  if (count < 2) return 0;
  return std::clamp<std::int64_t>(std::llround(share * static_cast<double>(count)), 1, count - 1);
}

ItemSplit split_items(const std::int64_t count, const double share, const std::uint64_t key) {
  const Items order = shuffled(count, key);
  const auto middle = order.begin() + held_out_count(count, share);
  return {{order.begin(), middle}, {middle, order.end()}};
}

std::vector<Items> cut(const Items& items, const std::int64_t size) {
  std::vector<Items> batches;
  for (auto begin = items.begin(); begin != items.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(size, items.end() - begin);
    batches.emplace_back(begin, end);
    begin = end;
  }
  return batches;
}

std::vector<Items> cut_by_length(Items items, const std::int64_t size, const ItemLength& length) {
  std::ranges::stable_sort(items, {}, length);
  return cut(items, size);
}

} // namespace hydrascope::training
