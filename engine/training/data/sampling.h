// Random numbers as a function of their purpose, not of earlier ones, so that a resumed training needs no
// saved state; and the split of items into held-out items and batches. Plain header.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

namespace hydrascope::training {

// A well-mixed 64-bit number from a list of numbers (SplitMix64 finaliser, Steele et al. 2014).
std::uint64_t mix(std::initializer_list<std::uint64_t> parts);

// Uniform in [0, 1).
double unit(std::uint64_t bits);

// A permutation of 0 … count−1 that depends on `key` alone (Fisher–Yates).
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t key);

// A number drawn from Beta(α, α), which depends on `key` alone.
double symmetric_beta(double alpha, std::uint64_t key);

using Items = std::vector<std::int64_t>;

// The number of held-out items: at least one, never all, none of fewer than two.
std::int64_t held_out_count(std::int64_t count, double share);

// 0 … count−1 in two random parts, which depend on `key` alone.
struct ItemSplit {
  Items held_out, training;
};
ItemSplit split_items(std::int64_t count, double share, std::uint64_t key);

// ⌈number / divisor⌉; the number is not negative.
constexpr std::int64_t ceil_divide(const std::int64_t number, const std::int64_t divisor) {
  return number / divisor + (number % divisor == 0 ? 0 : 1);
}

// Batches of `size` in the given order; the last may have fewer.
std::vector<Items> cut(const Items& items, std::int64_t size);
// Batches of items of similar length, the shortest first, which need little padding.
using ItemLength = std::function<std::int64_t(std::int64_t item)>;
std::vector<Items> cut_by_length(Items items, std::int64_t size, const ItemLength& length);

} // namespace hydrascope::training
