// Fused hydra-cosine (Bolya et al. 2022, Eq. 10) as programs of one block of threads (program.h; hydra.cu
// launches them): out = q/‖q‖₂ ⊙ G, G = Σ_t k_t/‖k_t‖₂ ⊙ v_t over D-wide rows. With g = ∂L/∂out and
// H = Σ_t q_t/‖q_t‖₂ ⊙ g_t: ∂L/∂v = k/‖k‖₂ ⊙ H, ∂L/∂(q/‖q‖₂) = g ⊙ G and ∂L/∂(k/‖k‖₂) = v ⊙ H.
//
// All sums are float32. Masked tokens are skipped before they are read: they may hold NaN.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/attention/cuda/program.h"

namespace hydrascope::cuda {

constexpr int rows_of_block = block_threads / warp_threads;

// The tokens of all sequences, one after another, and the features of each.
struct HydraShape {
  const unsigned char* mask; // (B,N); null: all real
  std::int64_t batch, tokens, width;

  HYDRASCOPE_BOTH bool real(const std::int64_t b, const std::int64_t t) const {
    return mask == nullptr || mask[b * tokens + t] != 0;
  }
};

// The row (b, t) of a warp of block `index`; `there` is false beyond the last row.
struct WarpRow {
  std::int64_t row, b, t;
  int lane;
  bool there, real;
  HYDRASCOPE_BOTH WarpRow(const HydraShape& shape, const std::int64_t index, const int thread)
      : row(index * rows_of_block + thread / warp_threads),
        b(row / shape.tokens),
        t(row % shape.tokens),
        lane(thread % warp_threads),
        there(row < shape.batch * shape.tokens),
        real(there && shape.real(b, t)) {}
};

// 1/max(‖x‖₂, 10⁻¹²) of each row of x(b, t, f), one warp per row; 0 for masked rows: (B,N).
template <typename Block, typename Read>
HYDRASCOPE_BLOCK void inverse_norms(Block& block, const HydraShape& shape, const std::int64_t index,
                                    const Read& x, float* const inverse) {
  typename Block::template Local<float> squares(0.0f);
  block.each([&](const int thread) {
    const WarpRow at(shape, index, thread);
    if (!at.real) return;
    for (std::int64_t f = at.lane; f < shape.width; f += warp_threads) {
      const float value = x(at.b, at.t, f);
      squares[thread] += value * value;
    }
  });
  block.sum_of_warp(squares);
  block.each([&](const int thread) {
    const WarpRow at(shape, index, thread);
    if (at.there && at.lane == 0)
      inverse[at.row] = at.real ? 1.0f / larger(sqrtf(squares[thread]), 1e-12f) : 0.0f;
  });
}

// partial[b][part][f] = Σ over a part of the tokens of x/‖x‖ ⊙ y, a thread per feature.
template <typename Block, typename Read>
HYDRASCOPE_BLOCK void partial_sums(Block& block, const HydraShape& shape, const std::int64_t features_index,
                                   const int part, const int parts, const std::int64_t b, const Read& x,
                                   const Read& y, const float* const inverse, float* const partial) {
  const std::int64_t first = shape.tokens * part / parts, last = shape.tokens * (part + 1) / parts;
  block.each([&](const int thread) {
    const std::int64_t f = features_index * block_threads + thread;
    if (f >= shape.width) return;
    float sum = 0;
    for (std::int64_t t = first; t < last; ++t)
      if (shape.real(b, t)) sum += x(b, t, f) * inverse[b * shape.tokens + t] * y(b, t, f);
    partial[(b * parts + part) * shape.width + f] = sum;
  });
}

// sums[b][f] = Σ over the parts, in a fixed order, so that results are reproducible to the bit.
template <typename Block>
HYDRASCOPE_BLOCK void add_parts(Block& block, const HydraShape& shape, const std::int64_t features_index,
                                const int parts, const std::int64_t b, const float* const partial,
                                float* const sums) {
  block.each([&](const int thread) {
    const std::int64_t f = features_index * block_threads + thread;
    if (f >= shape.width) return;
    float sum = 0;
    for (int part = 0; part < parts; ++part) sum += partial[(b * parts + part) * shape.width + f];
    sums[b * shape.width + f] = sum;
  });
}

// Calls write(b, t, f, x/‖x‖ ⊙ sums) for each element, with 0 in masked rows.
template <typename Block, typename Read, typename Write>
HYDRASCOPE_BLOCK void gate(Block& block, const HydraShape& shape, const std::int64_t index, const Read& x,
                           const float* const inverse, const float* const sums, const Write& write) {
  block.each([&](const int thread) {
    const WarpRow at(shape, index, thread);
    if (!at.there) return;
    for (std::int64_t f = at.lane; f < shape.width; f += warp_threads)
      write(at.b, at.t, f,
            at.real ? x(at.b, at.t, f) * inverse[at.row] * sums[at.b * shape.width + f] : 0.0f);
  });
}

// ∂L/∂x, where ∂L/∂n = u = y ⊙ sums for n = x/‖x‖: (u − n (n·u))/‖x‖, 0 in masked rows.
template <typename Block, typename Read, typename Write>
HYDRASCOPE_BLOCK void through_norm(Block& block, const HydraShape& shape, const std::int64_t index,
                                   const Read& x, const Read& y, const float* const inverse,
                                   const float* const sums, const Write& write) {
  typename Block::template Local<float> dot(0.0f);
  const auto by_unit = [&](const WarpRow& at, const std::int64_t f) {
    return y(at.b, at.t, f) * sums[at.b * shape.width + f];
  };
  block.each([&](const int thread) {
    const WarpRow at(shape, index, thread);
    if (!at.real) return;
    for (std::int64_t f = at.lane; f < shape.width; f += warp_threads)
      dot[thread] += x(at.b, at.t, f) * inverse[at.row] * by_unit(at, f);
  });
  block.sum_of_warp(dot);
  block.each([&](const int thread) {
    const WarpRow at(shape, index, thread);
    if (!at.there) return;
    for (std::int64_t f = at.lane; f < shape.width; f += warp_threads) {
      float value = 0;
      if (at.real) {
        const float scale = inverse[at.row];
        value = (by_unit(at, f) - x(at.b, at.t, f) * scale * dot[thread]) * scale;
      }
      write(at.b, at.t, f, value);
    }
  });
}

} // namespace hydrascope::cuda
