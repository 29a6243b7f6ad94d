// Randomness as a function of what it is for, not of what was drawn before: a resumed training needs no saved
// state.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace hydrascope::training {

// A well-mixed 64-bit number from a list of numbers (SplitMix64 finaliser, Steele et al. 2014).
std::uint64_t mix(std::initializer_list<std::uint64_t> parts);

// Uniform in [0, 1).
double unit(std::uint64_t bits);

// 0 … count−1 in an order that depends on `key` alone (Fisher–Yates).
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t key);

// A draw from Beta(α, α), which depends on `key` alone.
double symmetric_beta(double alpha, std::uint64_t key);

} // namespace hydrascope::training
