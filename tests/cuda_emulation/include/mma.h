// WMMA, 16 × 16 × 16: lane l of a warp has entries l, l + 32, … of a square in row-major order. (CUDA leaves
// the distribution open.)
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

constexpr int side = 16;
constexpr int entries_of_lane = side * side / cuda_emulation::warp_size;

template <typename Use, int rows, int columns, int depth, typename T, typename Layout = void>
struct fragment {
  static_assert(rows == side && columns == side && depth == side);
  static constexpr int num_elements = entries_of_lane;
  T x[entries_of_lane];
  // NaN, like what a register of the GPU may hold.
  fragment() { std::memset(static_cast<void*>(x), 0xff, sizeof x); }
};

// Calls use(i, row, column) for each entry i of this lane.
template <typename Use>
void each_entry(const Use& use) {
  const int lane = static_cast<int>(threadIdx.x) % cuda_emulation::warp_size;
  for (int i = 0; i < entries_of_lane; ++i) {
    const int entry = lane + cuda_emulation::warp_size * i;
    use(i, entry / side, entry % side);
  }
}

// CUDA asks for 32 bytes of the first entry, and 16 of the distance of rows.
template <typename T>
void check_alignment(const T* const first, const unsigned stride) {
  if (reinterpret_cast<std::uintptr_t>(first) % 32 != 0 || stride * sizeof(T) % 16 != 0)
    cuda_emulation::fail("WMMA: a square in memory is not aligned");
}

template <typename Fragment>
void fill_fragment(Fragment& fragment, const float value) {
  for (auto& entry : fragment.x) entry = value;
}

template <typename Use, typename T, typename Layout>
void load_matrix_sync(fragment<Use, side, side, side, T, Layout>& to, const T* const from,
                      const unsigned stride) {
  check_alignment(from, stride);
  cuda_emulation::synchronise_warp();
  each_entry([&](const int i, const int row, const int column) {
    const bool by_rows = std::is_same_v<Layout, row_major>;
    const int index =
        by_rows ? row * static_cast<int>(stride) + column : column * static_cast<int>(stride) + row;
    to.x[i] = from[index];
  });
}

template <typename T, typename LayoutOfA, typename LayoutOfB>
void mma_sync(fragment<accumulator, side, side, side, float>& d,
              const fragment<matrix_a, side, side, side, T, LayoutOfA>& a,
              const fragment<matrix_b, side, side, side, T, LayoutOfB>& b,
              const fragment<accumulator, side, side, side, float>& c) {
  cuda_emulation::WarpMatrices& matrices = cuda_emulation::matrices_of_warp();
  each_entry([&](const int i, const int row, const int column) {
    matrices.a[row][column] = static_cast<float>(a.x[i]);
    matrices.b[row][column] = static_cast<float>(b.x[i]);
  });
  cuda_emulation::synchronise_warp();
  each_entry([&](const int i, const int row, const int column) {
    float sum = c.x[i];
    for (int k = 0; k < side; ++k) sum += matrices.a[row][k] * matrices.b[k][column];
    d.x[i] = sum;
  });
  cuda_emulation::synchronise_warp(); // before the next product overwrites the matrices
}

inline void store_matrix_sync(float* const to, const fragment<accumulator, side, side, side, float>& from,
                              const unsigned stride, const layout_t layout) {
  check_alignment(to, stride);
  cuda_emulation::synchronise_warp();
  each_entry([&](const int i, const int row, const int column) {
    const bool by_rows = layout == mem_row_major;
    const int index =
        by_rows ? row * static_cast<int>(stride) + column : column * static_cast<int>(stride) + row;
    to[index] = from.x[i];
  });
  cuda_emulation::synchronise_warp();
}

} // namespace nvcuda::wmma
