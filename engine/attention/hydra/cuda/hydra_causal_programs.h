// Causal hydra-cosine as programs of one block of threads, of the pieces of hydra_programs.h:
// out_t = q_t/‖q_t‖₂ ⊙ G_t with G_t = Σ_{s≤t} k_s/‖k_s‖₂ ⊙ v_s. With g = ∂L/∂out and
// H_s = Σ_{t≥s} q_t/‖q_t‖₂ ⊙ g_t the gradients are those of hydra_programs.h, G and H now the token's own.
//
// A warp has a chunk of 32 tokens:
//   1. the sum of each chunk,
//   2. in its place the sum of all chunks before, added in a fixed order,
//   3. each chunk token by token, the sum so far in registers.
// For H "before" means after: chunks and tokens are taken from the last to the first.
#pragma once

#include "engine/attention/hydra/cuda/hydra_programs.h"

namespace hydrascope::cuda {

constexpr int chunk_tokens = 32;
constexpr int chunks_at_once = 16; // whose sums a thread loads before it stores them

HYDRASCOPE_BOTH constexpr std::int64_t hydra_chunks(const std::int64_t tokens) {
  return (tokens + chunk_tokens - 1) / chunk_tokens;
}

// The chunks of a block's warps, and the order in which their tokens are added.
struct HydraChunks {
  HydraSlice of;
  std::int64_t index; // of the block among those of a sequence
  bool backwards;

  HYDRASCOPE_BOTH std::int64_t chunk(const int thread) const {
    return index * rows_of_block + thread / warp_threads;
  }
  // The step-th token of a thread's chunk.
  HYDRASCOPE_BOTH WarpRow row(const HydraShape& shape, const int step, const int thread) const {
    const std::int64_t t = chunk(thread) * chunk_tokens + (backwards ? chunk_tokens - 1 - step : step);
    return WarpRow(shape, of.b, t - thread / warp_threads, shape.tokens, thread);
  }
  // The sums of a thread's chunk among those of all sequences.
  HYDRASCOPE_BOTH HydraSlice sums(const HydraShape& shape, const int thread) const {
    return {of.b * hydra_chunks(shape.tokens) + chunk(thread), of.slice};
  }
  HYDRASCOPE_BOTH bool there(const HydraShape& shape, const int thread) const {
    return chunk(thread) < hydra_chunks(shape.tokens);
  }
};

// Adds x/‖x‖ ⊙ y to the sums, token by token. For each real token load(thread, row) is called first; once the
// token is added, for all threads together, use(row of a thread).
template <typename Block, typename Read, typename Load, typename Use>
HYDRASCOPE_BLOCK void over_chunks(Block& block, const HydraShape& shape, const HydraChunks& chunks,
                                  const Read& x, const Read& y,
                                  typename Block::template Local<SharedSums<Read::count>>& sum,
                                  const Load& load, const Use& use) {
  HYDRASCOPE_KEEP_LOOP
  for (int step = 0; step < chunk_tokens; ++step) {
    const auto row = [&](const int thread) { return chunks.row(shape, step, thread); };
    typename Block::template Local<SharedRow<Read>> of_x(SharedRow<Read>{}), of_y(SharedRow<Read>{});
    typename Block::template Local<float> squares(0.0f);
    block.alone([&](const int thread) {
      const WarpRow at = row(thread);
      if (!at.real) return;
      load_row(shape, chunks.of, at, x, of_x[thread]);
      load_row(shape, chunks.of, at, y, of_y[thread]);
      load(thread, at);
      squares[thread] = squares_of(shape, chunks.of, at, x, of_x[thread]);
    });
    block.sum_of_warp(squares);
    block.alone([&](const int thread) {
      const WarpRow at = row(thread);
      if (at.real)
        add_product(shape, chunks.of, at.lane, of_x[thread], inverse_norm(squares[thread]), of_y[thread],
                    sum[thread]);
    });
    use(row);
  }
}

// 1. The sum of x/‖x‖ ⊙ y over each chunk.
template <typename Block, typename Read>
HYDRASCOPE_BLOCK void sums_of_chunks(Block& block, const HydraShape& shape, const HydraChunks& chunks,
                                     const Read& x, const Read& y, float* const sums) {
  typename Block::template Local<SharedSums<Read::count>> sum(SharedSums<Read::count>{});
  over_chunks(
      block, shape, chunks, x, y, sum, [](int, const WarpRow&) {}, [](const auto&) {});
  block.alone([&](const int thread) {
    if (!chunks.there(shape, thread)) return;
    const HydraSlice to = chunks.sums(shape, thread);
    each_piece<Read::count>(shape, to.slice, thread % warp_threads, [&](const int i, const int f) {
      HYDRASCOPE_UNROLL
      for (int j = 0; j < Read::count; ++j)
        sums[to.b * shape.width + f + j] = sum[thread].at[i * Read::count + j];
    });
  });
}

// 2. A thread for each feature of a sequence.
template <typename Block>
HYDRASCOPE_BLOCK void sums_before_chunks(Block& block, const HydraShape& shape, const std::int64_t b,
                                         const std::int64_t index, const bool backwards, float* const sums) {
  block.alone([&](const int thread) {
    const std::int64_t f = index * block_threads + thread, chunks = hydra_chunks(shape.tokens);
    if (f >= shape.width) return;
    float* const first_sum = sums + (b * chunks + (backwards ? chunks - 1 : 0)) * shape.width + f;
    const std::int64_t stride = backwards ? -shape.width : shape.width;
    float before = 0;
    for (std::int64_t first = 0; first < chunks; first += chunks_at_once) {
      float own[chunks_at_once];
      HYDRASCOPE_UNROLL
      for (int i = 0; i < chunks_at_once; ++i)
        own[i] = first + i < chunks ? first_sum[(first + i) * stride] : 0.0f;
      HYDRASCOPE_UNROLL
      for (int i = 0; i < chunks_at_once; ++i) {
        if (first + i < chunks) first_sum[(first + i) * stride] = before;
        before += own[i];
      }
    }
  });
}

template <typename Block, typename Read>
HYDRASCOPE_BLOCK void load_sums_before(Block& block, const HydraShape& shape, const HydraChunks& chunks,
                                       const float* const before,
                                       typename Block::template Local<SharedSums<Read::count>>& to) {
  block.alone([&](const int thread) {
    if (chunks.there(shape, thread))
      load_sums<Read>(shape, chunks.sums(shape, thread), thread % warp_threads, before, to[thread]);
  });
}

// 3. Calls write(b, t, f, values of a piece) with q/‖q‖ ⊙ G, with 0 in masked rows.
template <typename Block, typename Read, typename Write>
HYDRASCOPE_BLOCK void causal_gate(Block& block, const HydraShape& shape, const HydraChunks& chunks,
                                  const Read& k, const Read& v, const Read& q, const float* const before,
                                  const Write& write) {
  typename Block::template Local<SharedSums<Read::count>> sum(SharedSums<Read::count>{});
  load_sums_before<Block, Read>(block, shape, chunks, before, sum);
  typename Block::template Local<SharedRow<Read>> of_q(SharedRow<Read>{});
  typename Block::template Local<float> squares(0.0f);
  over_chunks(
      block, shape, chunks, k, v, sum,
      [&](const int thread, const WarpRow& at) {
        load_row(shape, chunks.of, at, q, of_q[thread]);
        squares[thread] = squares_of(shape, chunks.of, at, q, of_q[thread]);
      },
      [&](const auto& row) {
        block.sum_of_warp(squares);
        block.alone([&](const int thread) {
          const WarpRow at = row(thread);
          if (at.there) write_gated(shape, chunks.of, at, of_q[thread], squares[thread], sum[thread], write);
        });
      });
}

// x · (y ⊙ G) of the tokens' slices, (B, slices, N): where rows have several, each computes its own before
// any needs them all.
struct HydraDots {
  float* of_slices; // null: rows have one slice
  bool are_written; // and nothing else
};

// 3. for gradients: write_through_norm() of the tokens, the sums being those of a/‖a‖ ⊙ b: of k and v for
// x, y = q, g; of q and g for k, v.
template <typename Block, typename Read, typename WriteX, typename WriteY>
HYDRASCOPE_BLOCK void causal_through_norm(Block& block, const HydraShape& shape, const HydraChunks& chunks,
                                          const Read& a, const Read& b, const Read& x, const Read& y,
                                          const float* const before, const HydraDots dots,
                                          const WriteX& write_x, const WriteY& write_y) {
  typename Block::template Local<SharedSums<Read::count>> sum(SharedSums<Read::count>{});
  load_sums_before<Block, Read>(block, shape, chunks, before, sum);
  typename Block::template Local<SharedRow<Read>> of_x(SharedRow<Read>{}), of_y(SharedRow<Read>{});
  typename Block::template Local<float> squares(0.0f), dot(0.0f);
  const int slices = shape.slices(Read::count);
  const auto dot_at = [&](const int slice, const std::int64_t t) -> float& {
    return dots.of_slices[(chunks.of.b * slices + slice) * shape.tokens + t];
  };
  over_chunks(
      block, shape, chunks, a, b, sum,
      [&](const int thread, const WarpRow& at) {
        load_row(shape, chunks.of, at, x, of_x[thread]);
        load_row(shape, chunks.of, at, y, of_y[thread]);
        squares[thread] = squares_of(shape, chunks.of, at, x, of_x[thread]);
      },
      [&](const auto& row) {
        block.alone([&](const int thread) {
          const WarpRow at = row(thread);
          dot[thread] =
              at.real ? dot_of(shape, chunks.of, at.lane, of_x[thread], of_y[thread], sum[thread]) : 0.0f;
        });
        block.sum_of_warp(squares);
        block.sum_of_warp(dot);
        block.alone([&](const int thread) {
          const WarpRow at = row(thread);
          if (!at.there) return;
          if (dots.are_written) {
            if (at.lane == 0) dot_at(chunks.of.slice, at.t) = dot[thread];
            return;
          }
          if (dots.of_slices != nullptr) {
            dot[thread] = 0;
            for (int slice = 0; slice < slices; ++slice) dot[thread] += dot_at(slice, at.t);
          }
          write_through_norm(shape, chunks.of, at, of_x[thread], of_y[thread], squares[thread], dot[thread],
                             sum[thread], write_x, write_y);
        });
      });
}

} // namespace hydrascope::cuda
