// The instructions of engine/attention/cuda/warp_matrix.cuh, with the distribution of elements over the lanes
// that PTX defines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

namespace cuda_emulation {

using Pair = std::uint32_t;

inline int current_lane() { return static_cast<int>(current_thread().thread.x) % warp_size; }

inline void check_16_bytes(const void* const address) {
  if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) fail("an address of 16 bytes is not aligned");
}

inline void load_squares(Pair (&to)[4], const void* const row, const bool transposed) {
  check_16_bytes(row);
  const int lane = current_lane();
  WarpMatrices& matrices = matrices_of_warp();
  matrices.rows[lane] = row;
  synchronise_warp();
  // Of row `index` of square i, the element at `column`.
  const auto element = [&](const int i, const int index, const int column) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, static_cast<const std::uint16_t*>(matrices.rows[8 * i + index]) + column, sizeof bits);
    return static_cast<Pair>(bits);
  };
  const int g = lane / 4, pair = 2 * (lane % 4);
  for (int i = 0; i < 4; ++i) {
    const Pair first = transposed ? element(i, pair, g) : element(i, g, pair);
    const Pair second = transposed ? element(i, pair + 1, g) : element(i, g, pair + 1);
    to[i] = first | second << 16U;
  }
  synchronise_warp(); // before the next rows overwrite these
}

template <typename T>
float number_of(const Pair pair, const int index) {
  const auto bits = static_cast<std::uint16_t>(pair >> (16U * static_cast<unsigned>(index)));
  T value{};
  std::memcpy(static_cast<void*>(&value), &bits, sizeof bits);
  return static_cast<float>(value);
}

template <typename T>
Pair pair_of(const float first, const float second) {
  const T values[2] = {T(first), T(second)};
  Pair result = 0;
  std::memcpy(&result, static_cast<const void*>(values), sizeof result);
  return result;
}

template <typename T>
void multiply_add(float (&sum)[4], const Pair (&a)[4], const Pair b0, const Pair b1) {
  WarpMatrices& matrices = matrices_of_warp();
  const int g = current_lane() / 4, pair = 2 * (current_lane() % 4);
  for (int i = 0; i < 2; ++i) {
    matrices.a[g][pair + i] = number_of<T>(a[0], i);
    matrices.a[g + 8][pair + i] = number_of<T>(a[1], i);
    matrices.a[g][pair + 8 + i] = number_of<T>(a[2], i);
    matrices.a[g + 8][pair + 8 + i] = number_of<T>(a[3], i);
    matrices.b[pair + i][g] = number_of<T>(b0, i);
    matrices.b[pair + 8 + i][g] = number_of<T>(b1, i);
  }
  synchronise_warp();
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 16; ++k) sum[i] += matrices.a[g + i / 2 * 8][k] * matrices.b[k][pair + i % 2];
  synchronise_warp(); // before the next product overwrites the matrices
}

// What is copied is there once finish_copies() has waited for it, and NaN until then.
inline void start_copy(void* const to, const void* const from, const bool there) {
  check_16_bytes(to);
  if (there) check_16_bytes(from);
  std::memset(to, 0xff, 16);
  copies_of_thread().open.push_back({to, there ? from : nullptr});
}

inline void end_group_of_copies() {
  PendingCopies& copies = copies_of_thread();
  copies.groups.push_back(std::move(copies.open));
  copies.open.clear();
}

// All groups but the newest `pending`.
inline void finish_copies(const std::size_t pending) {
  std::vector<std::vector<Copy>>& groups = copies_of_thread().groups;
  const std::size_t finished = groups.size() - std::min(pending, groups.size());
  for (std::size_t group = 0; group < finished; ++group)
    for (const Copy& copy : groups[group])
      if (copy.from == nullptr)
        std::memset(copy.to, 0, 16);
      else
        std::memcpy(copy.to, copy.from, 16);
  groups.erase(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(finished));
}

} // namespace cuda_emulation
