// Fused hydra-cosine (Bolya et al. 2022, Eq. 10) as programs of one block of threads (program.h; hydra.cu
// launches them): out = q/‖q‖₂ ⊙ G, G = Σ_t k_t/‖k_t‖₂ ⊙ v_t over D-wide rows. With g = ∂L/∂out and
// H = Σ_t q_t/‖q_t‖₂ ⊙ g_t: ∂L/∂v = k/‖k‖₂ ⊙ H, ∂L/∂(q/‖q‖₂) = g ⊙ G and ∂L/∂(k/‖k‖₂) = v ⊙ H.
//
// A warp keeps a row in registers, in pieces of as many elements as one load takes, so that norm and product
// read it once. Rows of more than 1,024 features (256 where they are not aligned) are taken in slices: a warp
// keeps one and reads the others for the norm. All sums are float32. Masked tokens are skipped before they
// are read: they may hold NaN.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/attention/cuda/program.h"

namespace hydrascope::cuda {

constexpr int rows_of_block = block_threads / warp_threads; // at a time
constexpr int rows_of_warp = 4;                             // that share the sums which the warp has loaded
constexpr int most_values = 32;                             // of a row that a thread keeps
constexpr int parts_of_group = 16;                          // partial sums that one block adds
constexpr int max_parts = 128;
constexpr int counters_of_slice = 16; // of the groups of parts, then of the groups of groups
static_assert(max_parts / parts_of_group * 2 <= counters_of_slice);

// Of pieces of `count` elements: fewer where each element is a load of its own, which takes registers.
HYDRASCOPE_BOTH constexpr int values_of_thread(const int count) { return count == 1 ? 8 : most_values; }
HYDRASCOPE_BOTH constexpr int slice_width(const int count) { return warp_threads * values_of_thread(count); }
HYDRASCOPE_BOTH constexpr int hydra_shared_floats(const int count) {
  return rows_of_block * slice_width(count);
}

// The tokens of all sequences, one after another, and the features of each.
struct HydraShape {
  const unsigned char* mask; // (B,N); null: all real
  std::int64_t batch, tokens, width;

  HYDRASCOPE_BOTH bool real(const std::int64_t b, const std::int64_t t) const {
    return mask == nullptr || mask[b * tokens + t] != 0;
  }
  HYDRASCOPE_BOTH int slices(const int count) const {
    return static_cast<int>((width + slice_width(count) - 1) / slice_width(count));
  }
};

// A slice of the rows of one sequence.
struct HydraSlice {
  std::int64_t b;
  int slice;
};

// Token first + warp of a sequence; `there` is false from `last` on.
struct WarpRow {
  std::int64_t t;
  int lane;
  bool there, real;
  HYDRASCOPE_BOTH WarpRow(const HydraShape& shape, const std::int64_t b, const std::int64_t first,
                          const std::int64_t last, const int thread)
      : t(first + thread / warp_threads),
        lane(thread % warp_threads),
        there(t < last),
        real(there && shape.real(b, t)) {}
};

// A thread's share of a slice: of pieces, or of numbers.
template <typename Read>
struct SharedRow {
  typename Read::Piece at[values_of_thread(Read::count) / Read::count];
};
template <int count>
struct SharedSums {
  float at[values_of_thread(count)];
};

// Calls use(i, f) with the first feature f of a thread's i-th piece of a slice.
template <int count, typename Use>
HYDRASCOPE_BLOCK void each_piece(const HydraShape& shape, const int slice, const int lane, const Use& use) {
  HYDRASCOPE_UNROLL
  for (int i = 0; i < values_of_thread(count) / count; ++i) {
    const int f = slice * slice_width(count) + (i * warp_threads + lane) * count;
    if (f < shape.width) use(i, f);
  }
}

template <typename Read>
HYDRASCOPE_BLOCK void load_row(const HydraShape& shape, const HydraSlice& of, const WarpRow& at,
                               const Read& x, SharedRow<Read>& to) {
  each_piece<Read::count>(shape, of.slice, at.lane,
                          [&](const int i, const int f) { to.at[i] = x(of.b, at.t, f); });
}

template <typename Read>
HYDRASCOPE_BLOCK void load_sums(const HydraShape& shape, const HydraSlice& of, const int lane,
                                const float* const sums, SharedSums<Read::count>& to) {
  each_piece<Read::count>(shape, of.slice, lane, [&](const int i, const int f) {
    using Floats = Piece<float, Read::count>;
    const Floats piece = *reinterpret_cast<const Floats*>(sums + of.b * shape.width + f);
    HYDRASCOPE_UNROLL
    for (int j = 0; j < Read::count; ++j) to.at[i * Read::count + j] = piece.at[j];
  });
}

// A thread's share of ‖x‖², of which one slice is in `row`.
template <typename Read>
HYDRASCOPE_BLOCK float squares_of(const HydraShape& shape, const HydraSlice& of, const WarpRow& at,
                                  const Read& x, const SharedRow<Read>& row) {
  float squares = 0;
  const auto add = [&](const typename Read::Piece& piece) {
    HYDRASCOPE_UNROLL
    for (int j = 0; j < Read::count; ++j) squares += Read::number(piece, j) * Read::number(piece, j);
  };
  each_piece<Read::count>(shape, of.slice, at.lane, [&](const int i, int) { add(row.at[i]); });
  for (int slice = 0; slice < shape.slices(Read::count); ++slice)
    if (slice != of.slice)
      each_piece<Read::count>(shape, slice, at.lane, [&](int, const int f) { add(x(of.b, at.t, f)); });
  return squares;
}

// 1/max(‖x‖₂, 10⁻¹²)
HYDRASCOPE_BOTH inline float inverse_norm(const float squares) {
  return 1.0f / larger(sqrtf(squares), 1e-12f);
}

// sum += x · scale ⊙ y
template <typename Read>
HYDRASCOPE_BLOCK void add_product(const HydraShape& shape, const HydraSlice& of, const int lane,
                                  const SharedRow<Read>& x, const float scale, const SharedRow<Read>& y,
                                  SharedSums<Read::count>& sum) {
  each_piece<Read::count>(shape, of.slice, lane, [&](const int i, int) {
    HYDRASCOPE_UNROLL
    for (int j = 0; j < Read::count; ++j)
      sum.at[i * Read::count + j] += Read::number(x.at[i], j) * scale * Read::number(y.at[i], j);
  });
}

// A thread's share of x · (y ⊙ factors) over a slice.
template <typename Read>
HYDRASCOPE_BLOCK float dot_of(const HydraShape& shape, const HydraSlice& of, const int lane,
                              const SharedRow<Read>& x, const SharedRow<Read>& y,
                              const SharedSums<Read::count>& factors) {
  float sum = 0;
  each_piece<Read::count>(shape, of.slice, lane, [&](const int piece, int) {
    HYDRASCOPE_UNROLL
    for (int j = 0; j < Read::count; ++j)
      sum +=
          Read::number(x.at[piece], j) * Read::number(y.at[piece], j) * factors.at[piece * Read::count + j];
  });
  return sum;
}

// Calls write(b, t, f, values of a piece) with x/‖x‖ ⊙ factors, with 0 in a masked row.
template <typename Read, typename Write>
HYDRASCOPE_BLOCK void write_gated(const HydraShape& shape, const HydraSlice& of, const WarpRow& at,
                                  const SharedRow<Read>& x, const float squares,
                                  const SharedSums<Read::count>& factors, const Write& write) {
  const float scale = inverse_norm(squares);
  each_piece<Read::count>(shape, of.slice, at.lane, [&](const int piece, const int f) {
    float values[Read::count];
    HYDRASCOPE_UNROLL
    for (int j = 0; j < Read::count; ++j)
      values[j] = at.real ? Read::number(x.at[piece], j) * scale * factors.at[piece * Read::count + j] : 0.0f;
    write(of.b, at.t, f, values);
  });
}

// Calls write_x with ∂L/∂x, where ∂L/∂n = u = y ⊙ factors for n = x/‖x‖: (u − n (n·u))/‖x‖; and write_y with
// ∂L/∂y = n ⊙ factors; dot is x · u. 0 in a masked row.
template <typename Read, typename WriteX, typename WriteY>
HYDRASCOPE_BLOCK void write_through_norm(const HydraShape& shape, const HydraSlice& of, const WarpRow& at,
                                         const SharedRow<Read>& x, const SharedRow<Read>& y,
                                         const float squares, const float dot,
                                         const SharedSums<Read::count>& factors, const WriteX& write_x,
                                         const WriteY& write_y) {
  const float scale = inverse_norm(squares), along = scale * dot;
  each_piece<Read::count>(shape, of.slice, at.lane, [&](const int piece, const int f) {
    float by_x[Read::count], by_y[Read::count];
    HYDRASCOPE_UNROLL
    for (int j = 0; j < Read::count; ++j) {
      const float factor = factors.at[piece * Read::count + j];
      const float unit = Read::number(x.at[piece], j) * scale;
      const float by_unit = Read::number(y.at[piece], j) * factor;
      by_x[j] = at.real ? (by_unit - unit * along) * scale : 0.0f;
      by_y[j] = at.real ? unit * factor : 0.0f;
    }
    write_x(of.b, at.t, f, by_x);
    write_y(of.b, at.t, f, by_y);
  });
}

// Adds the sums of the block's warps in a fixed order and calls store(position, f, sum). A position is
// value · 32 + lane: neighbouring threads read and write neighbouring entries.
template <int count, typename Block, typename Store>
HYDRASCOPE_BLOCK void add_warps(Block& block, const HydraShape& shape, const int slice,
                                typename Block::template Local<SharedSums<count>>& sums, float* const shared,
                                const Store& store) {
  block.each([&](const int thread) {
    float* const own = shared + thread / warp_threads * slice_width(count) + thread % warp_threads;
    HYDRASCOPE_UNROLL
    for (int i = 0; i < values_of_thread(count); ++i) own[i * warp_threads] = sums[thread].at[i];
  });
  block.each([&](const int thread) {
    for (int position = thread; position < slice_width(count); position += block_threads) {
      const int value = position / warp_threads, lane = position % warp_threads;
      const int f =
          slice * slice_width(count) + (value / count * warp_threads + lane) * count + value % count;
      if (f >= shape.width) continue;
      float sum = 0;
      for (int warp = 0; warp < rows_of_block; ++warp) sum += shared[warp * slice_width(count) + position];
      store(position, f, sum);
    }
  });
}

// sums[b][f] = Σ_t x/‖x‖ ⊙ y: each block adds the rows of a part of the tokens, the last block of 16 parts
// those, and the last of these all, in a fixed order, so that results are reproducible to the bit. `partial`
// has max_parts slices for each slice of the sums, `counters` counters_of_slice, which are 0.
template <typename Block, typename Read>
HYDRASCOPE_BLOCK void sums_of_rows(Block& block, const HydraShape& shape, const HydraSlice& of,
                                   const int part, const int parts, const Read& x, const Read& y,
                                   float* const shared, float* const partial, unsigned* const counters,
                                   float* const sums) {
  typename Block::template Local<SharedSums<Read::count>> sum(SharedSums<Read::count>{});
  const std::int64_t first = shape.tokens * part / parts, last = shape.tokens * (part + 1) / parts;
  for (std::int64_t row = first; row < last; row += rows_of_block) {
    typename Block::template Local<SharedRow<Read>> of_x(SharedRow<Read>{}), of_y(SharedRow<Read>{});
    typename Block::template Local<float> squares(0.0f);
    block.alone([&](const int thread) {
      const WarpRow at(shape, of.b, row, last, thread);
      if (!at.real) return;
      load_row(shape, of, at, x, of_x[thread]);
      load_row(shape, of, at, y, of_y[thread]);
      squares[thread] = squares_of(shape, of, at, x, of_x[thread]);
    });
    block.sum_of_warp(squares);
    block.alone([&](const int thread) {
      const WarpRow at(shape, of.b, row, last, thread);
      if (!at.real) return;
      add_product(shape, of, at.lane, of_x[thread], inverse_norm(squares[thread]), of_y[thread], sum[thread]);
    });
  }
  const auto finish = [&](const int position, const int at_part, const int f, const float value) {
    if (at_part < 0)
      sums[of.b * shape.width + f] = value;
    else
      partial[at_part * slice_width(Read::count) + position] = value;
  };
  add_warps<Read::count>(block, shape, of.slice, sum, shared,
                         [&](const int position, const int f, const float value) {
                           finish(position, parts == 1 ? -1 : part, f, value);
                         });
  int level = 0;
  for (int span = 1; span < parts; span *= parts_of_group, ++level) { // from `span` parts to those of a group
    const int group = part / (span * parts_of_group), begin = group * span * parts_of_group;
    const int end = begin + span * parts_of_group < parts ? begin + span * parts_of_group : parts;
    const int members = (end - begin + span - 1) / span;
    const int counter = level * (max_parts / parts_of_group) + group;
    if (!block.is_last(counters + counter, static_cast<unsigned>(members), shared)) return;
    block.alone([&](const int thread) {
      const int lane = thread % warp_threads;
      SharedSums<Read::count>& own = sum[thread];
      own = {};
      for (int member = thread / warp_threads; member < members; member += rows_of_block) {
        // Volatile: other blocks wrote it, past this multiprocessor's cache.
        const volatile float* const from =
            partial + (begin + member * span) * slice_width(Read::count) + lane;
        each_piece<Read::count>(shape, of.slice, lane, [&](const int i, int) {
          HYDRASCOPE_UNROLL
          for (int j = 0; j < Read::count; ++j)
            own.at[i * Read::count + j] += from[(i * Read::count + j) * warp_threads];
        });
      }
    });
    const bool all = begin == 0 && end == parts;
    add_warps<Read::count>(block, shape, of.slice, sum, shared,
                           [&](const int position, const int f, const float value) {
                             finish(position, all ? -1 : begin, f, value);
                           });
  }
}

// write_gated() of the index-th share of a sequence's tokens.
template <typename Block, typename Read, typename Write>
HYDRASCOPE_BLOCK void gate(Block& block, const HydraShape& shape, const HydraSlice& of,
                           const std::int64_t index, const Read& x, const float* const sums,
                           const Write& write) {
  typename Block::template Local<SharedSums<Read::count>> factors(SharedSums<Read::count>{});
  block.alone(
      [&](const int thread) { load_sums<Read>(shape, of, thread % warp_threads, sums, factors[thread]); });
  for (int i = 0; i < rows_of_warp; ++i) {
    const std::int64_t row = (index * rows_of_warp + i) * rows_of_block;
    typename Block::template Local<SharedRow<Read>> of_x(SharedRow<Read>{});
    typename Block::template Local<float> squares(0.0f);
    block.alone([&](const int thread) {
      const WarpRow at(shape, of.b, row, shape.tokens, thread);
      if (!at.real) return;
      load_row(shape, of, at, x, of_x[thread]);
      squares[thread] = squares_of(shape, of, at, x, of_x[thread]);
    });
    block.sum_of_warp(squares);
    block.alone([&](const int thread) {
      const WarpRow at(shape, of.b, row, shape.tokens, thread);
      if (at.there) write_gated(shape, of, at, of_x[thread], squares[thread], factors[thread], write);
    });
  }
}

// write_through_norm() likewise.
template <typename Block, typename Read, typename WriteX, typename WriteY>
HYDRASCOPE_BLOCK void through_norm(Block& block, const HydraShape& shape, const HydraSlice& of,
                                   const std::int64_t index, const Read& x, const Read& y,
                                   const float* const sums, const WriteX& write_x, const WriteY& write_y) {
  typename Block::template Local<SharedSums<Read::count>> factors(SharedSums<Read::count>{});
  block.alone(
      [&](const int thread) { load_sums<Read>(shape, of, thread % warp_threads, sums, factors[thread]); });
  for (int i = 0; i < rows_of_warp; ++i) {
    const std::int64_t row = (index * rows_of_warp + i) * rows_of_block;
    typename Block::template Local<SharedRow<Read>> of_x(SharedRow<Read>{}), of_y(SharedRow<Read>{});
    typename Block::template Local<float> squares(0.0f), dot(0.0f); // dot: x · u
    block.alone([&](const int thread) {
      const WarpRow at(shape, of.b, row, shape.tokens, thread);
      if (!at.real) return;
      load_row(shape, of, at, x, of_x[thread]);
      load_row(shape, of, at, y, of_y[thread]);
      squares[thread] = squares_of(shape, of, at, x, of_x[thread]);
      float sum = dot_of(shape, of, at.lane, of_x[thread], of_y[thread], factors[thread]);
      for (int slice = 0; slice < shape.slices(Read::count); ++slice)
        if (slice != of.slice)
          each_piece<Read::count>(shape, slice, at.lane, [&](int, const int f) {
            const typename Read::Piece of_slice_x = x(of.b, at.t, f), of_slice_y = y(of.b, at.t, f);
            for (int j = 0; j < Read::count; ++j)
              sum += Read::number(of_slice_x, j) * Read::number(of_slice_y, j) *
                     sums[of.b * shape.width + f + j];
          });
      dot[thread] = sum;
    });
    block.sum_of_warp(squares);
    block.sum_of_warp(dot);
    block.alone([&](const int thread) {
      const WarpRow at(shape, of.b, row, shape.tokens, thread);
      if (at.there)
        write_through_norm(shape, of, at, of_x[thread], of_y[thread], squares[thread], dot[thread],
                           factors[thread], write_x, write_y);
    });
  }
}

} // namespace hydrascope::cuda
