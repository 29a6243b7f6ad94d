// What a block of linear.cu works on: φ of a head, the head's part of the workspace, its tokens, and the tile
// in shared memory; and φ of a tile. Compiled for the GPU and for the host.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/attention/cuda/program.h"
#include "engine/attention/linear/cuda/linear.h"

namespace hydrascope::cuda {

constexpr int tile_tokens = 32;
constexpr int threads_of_token = block_threads / tile_tokens;
constexpr int max_features = block_threads; // a thread each
constexpr int max_width = 128;
constexpr int lanes = 16; // side of the squares that tensor cores multiply
// Of rows of 32 tokens: neither the tokens of a feature nor the features of a token lie in one bank.
constexpr int key_stride = tile_tokens + 1;

HYDRASCOPE_BOTH constexpr int padded(const int count) { return (count + lanes - 1) / lanes * lanes; }

// φ of one head.
struct HeadMap {
  cpu::PointMap map;
  int width, inputs, outputs, features; // d, entries of x, m and m or 2m
  const float *weight, *bias, *token_weights;
  float scale, half_square;

  // Features are kept as logarithms until they are scaled.
  HYDRASCOPE_BOTH bool logarithmic() const {
    return map == cpu::PointMap::plus_minus_exponential || map == cpu::PointMap::exponential ||
           map == cpu::PointMap::softmax || map == cpu::PointMap::plus_minus_softmax ||
           map == cpu::PointMap::joint_softmax;
  }
};

HYDRASCOPE_BOTH inline HeadMap head_map(const LinearArguments& a, const SideArguments& side,
                                        const std::int64_t b, const std::int64_t h) {
  return {a.map,
          a.head_width,
          a.inputs,
          a.outputs,
          a.features,
          side.weight == nullptr ? nullptr : side.weight + h * side.weight_stride,
          side.bias == nullptr ? nullptr : side.bias + h * a.outputs,
          side.token_weights == nullptr ? nullptr : side.token_weights + b * side.token_weights_stride,
          side.scale,
          side.half_square};
}

// The number of parts that tokens are summed in: enough blocks to fill a GPU, few enough to add.
HYDRASCOPE_BOTH inline int linear_parts(const std::int64_t tokens) {
  const std::int64_t parts = (tokens + 255) / 256;
  return static_cast<int>(parts < 32 ? parts : 32);
}

// The workspace of one head of one sequence, rows padded to whole squares for the tensor cores.
struct HeadSpace {
  float* part_largest; // (parts, F)
  float* part_values;  // (parts, F, d)
  float* part_totals;  // (parts, F)
  float* largest;      // (F)
  float* means;        // (F, d); later A (linear_gradient_programs.h)
  float* weights;      // (F): z, of logarithmic maps largest + log z
  float* half_means;   // (F, d), a copy of `means` in a half type
  float* half_rests;   // (F, d), what that has rounded off, in the half type
};
HYDRASCOPE_BOTH inline std::int64_t head_space_floats(const LinearArguments& a) {
  const std::int64_t features = padded(a.features), width = padded(a.head_width);
  const std::int64_t parts = linear_parts(a.tokens);
  return parts * features * (width + 2) + features * (width + 2) + features * width;
}
// The start of the workspace: the number of denominators that were 0.
constexpr std::int64_t counter_floats = lanes;
HYDRASCOPE_BOTH inline HeadSpace head_space(const LinearArguments& a, const std::int64_t head) {
  const std::int64_t features = padded(a.features), width = padded(a.head_width);
  const std::int64_t parts = linear_parts(a.tokens);
  float* at = a.workspace + counter_floats + head * head_space_floats(a);
  const auto take = [&at](const std::int64_t floats) {
    float* const taken = at;
    at += floats;
    return taken;
  };
  HeadSpace space{};
  space.part_values = take(parts * features * width);
  space.means = take(features * width);
  space.half_means = take(features * width / 2);
  space.half_rests = take(features * width / 2);
  space.part_largest = take(parts * features);
  space.part_totals = take(parts * features);
  space.largest = take(features);
  space.weights = take(features);
  return space;
}

// Shared memory of a block. Once the features are computed, x and y are free for copies of a product's
// factors.
struct Tile {
  float* x;        // (32, inputs), room for padded rows of d
  float* y;        // (32, m), room for padded rows
  float* features; // (32, F)
  float* value;    // (32, d), rows padded with 0
  float* parts;    // (256): partial results of each token's eight threads
  float* token;    // (4, 32): four numbers of each token
  float* gradient; // (32, F padded): the gradient with respect to the features; only in programs of gradients
  // Of causal programs only; of those without gradients, `keys` in place of `gradient`.
  float* keys;  // (F, 32), rows one entry longer
  float* own;   // (32, d), rows padded with 0
  float* pairs; // (32, 32)
};
HYDRASCOPE_BOTH inline int tile_floats(const HeadMap& map, const bool gradient, const bool causal = false) {
  const int x = padded(map.inputs > map.width ? map.inputs : map.width);
  const int row = x + padded(map.width) + padded(map.outputs) + map.features + 4;
  const int features = padded(map.features);
  const int of_gradient = gradient ? tile_tokens * features : 0;
  const int of_causal = causal ? key_stride * features : 0;
  const int of_both = gradient && causal ? tile_tokens * (padded(map.width) + tile_tokens) : 0;
  return tile_tokens * row + of_gradient + of_causal + of_both + block_threads;
}
HYDRASCOPE_BOTH inline Tile tile_in(float* memory, const HeadMap& map) {
  Tile tile{};
  tile.x = memory;
  tile.y = tile.x + tile_tokens * padded(map.inputs > map.width ? map.inputs : map.width);
  tile.value = tile.y + tile_tokens * padded(map.outputs);
  tile.features = tile.value + tile_tokens * padded(map.width);
  tile.parts = tile.features + tile_tokens * map.features;
  tile.token = tile.parts + block_threads;
  tile.gradient = tile.token + 4 * tile_tokens;
  tile.keys = tile.gradient + tile_tokens * padded(map.features);
  tile.own = tile.keys + key_stride * padded(map.features);
  tile.pairs = tile.own + tile_tokens * padded(map.width);
  return tile;
}

// The tokens first … last−1 of a sequence.
struct Tokens {
  const unsigned char* mask; // null: all real
  std::int64_t first, last;

  HYDRASCOPE_BOTH bool real(const std::int64_t token) const {
    return token < last && (mask == nullptr || mask[token] != 0);
  }
};
HYDRASCOPE_BOTH inline Tokens part_of(const LinearArguments& a, const std::int64_t b, const int part) {
  const std::int64_t parts = linear_parts(a.tokens);
  return {a.mask == nullptr ? nullptr : a.mask + b * a.tokens, a.tokens * part / parts,
          a.tokens * (part + 1) / parts};
}

// Calls use(row, column) for a thread's share of the entries of `rows` rows: neighbouring threads have
// neighbouring entries. Divides twice, not once for each entry.
template <typename Use>
HYDRASCOPE_BLOCK void each_entry(const int thread, const int rows, const int columns, const Use& use) {
  const int down = block_threads / columns, across = block_threads % columns;
  int row = thread / columns, column = thread % columns;
  while (row < rows) {
    use(row, column);
    row += down;
    column += across;
    if (column >= columns) {
      column -= columns;
      ++row;
    }
  }
}

// Neighbouring floats of shared memory or of the workspace, by 16 bytes.
template <int count>
HYDRASCOPE_BLOCK void get_floats(const float* const from, float (&to)[count]) {
  HYDRASCOPE_UNROLL
  for (int i = 0; i < count; i += 4) {
    const auto piece = *reinterpret_cast<const Piece<float, 4>*>(from + i);
    HYDRASCOPE_UNROLL
    for (int j = 0; j < 4; ++j) to[i + j] = piece.at[j];
  }
}
template <int count>
HYDRASCOPE_BLOCK void put_floats(const float (&from)[count], float* const to) {
  HYDRASCOPE_UNROLL
  for (int i = 0; i < count; i += 4)
    *reinterpret_cast<Piece<float, 4>*>(to + i) = {{from[i], from[i + 1], from[i + 2], from[i + 3]}};
}

constexpr int columns_of_thread = 8; // of one token, where a row is multiplied by a matrix

// sum += factor · values
HYDRASCOPE_BLOCK inline void add_multiple(float (&sum)[columns_of_thread], const float factor,
                                          const float* const values) {
  float value[columns_of_thread];
  get_floats(values, value);
  HYDRASCOPE_UNROLL
  for (int i = 0; i < columns_of_thread; ++i) sum[i] += factor * value[i];
}

HYDRASCOPE_BLOCK inline float dot_of_four(const float* const a, const float (&b)[4]) {
  float of_a[4];
  get_floats(a, of_a);
  return of_a[0] * b[0] + of_a[1] * b[1] + of_a[2] * b[2] + of_a[3] * b[3];
}

// Loads the rows of up to 32 tokens from `first` on: by 16 bytes where all rows begin and end at multiples of
// 16 bytes, else entry by entry. Masked tokens are not read. In the tile, rows are `stride` long, and 0
// behind what is read.
template <typename Block, typename Read>
HYDRASCOPE_BLOCK void load(Block& block, const Read& read, const Tokens& tokens, const std::int64_t first,
                           const int width, const int stride, float* const to) {
  block.each([&](const int thread) {
    if constexpr (Read::count > 1)
      if (read.by_pieces) {
        each_entry(thread, tile_tokens, stride / Read::count, [&](const int t, const int piece) {
          const int c = piece * Read::count;
          float values[Read::count] = {};
          if (c < width && tokens.real(first + t)) read.piece(first + t, c, values);
          put_floats(values, to + t * stride + c);
        });
        return;
      }
    each_entry(thread, tile_tokens, stride, [&](const int t, const int c) {
      to[t * stride + c] = c < width && tokens.real(first + t) ? read(first + t, c) : 0.0f;
    });
  });
}

// Writes rows of the tile likewise: change(t, x) of each entry x of token t, 0 for masked tokens. Does not
// synchronise.
template <typename Block, typename Write, typename Change>
HYDRASCOPE_BLOCK void write_rows(Block& block, const Write& write, const Tokens& tokens,
                                 const std::int64_t first, const int width, const int stride,
                                 const float* const from, const Change& change) {
  block.alone([&](const int thread) {
    if constexpr (Write::count > 1)
      if (write.by_pieces) {
        each_entry(thread, tile_tokens, width / Write::count, [&](const int t, const int piece) {
          if (first + t >= tokens.last) return;
          float values[Write::count];
          get_floats(from + t * stride + piece * Write::count, values);
          HYDRASCOPE_UNROLL
          for (float& value : values) value = tokens.real(first + t) ? change(t, value) : 0.0f;
          write.piece(first + t, piece * Write::count, values);
        });
        return;
      }
    each_entry(thread, tile_tokens, width, [&](const int t, const int c) {
      if (first + t < tokens.last)
        write(first + t, c, tokens.real(first + t) ? change(t, from[t * stride + c]) : 0.0f);
    });
  });
}

// out[t] = the items 0 … count−1 of token t combined.
template <typename Block, typename Item, typename Combine>
HYDRASCOPE_BLOCK void reduce(Block& block, const Tile& tile, const int count, const float nothing,
                             const Item& item, const Combine& combine, float* const out) {
  block.each([&](const int thread) {
    float gathered = nothing;
    for (int i = thread % threads_of_token; i < count; i += threads_of_token)
      gathered = combine(gathered, item(thread / threads_of_token, i));
    tile.parts[thread] = gathered;
  });
  block.each([&](const int thread) {
    if (thread >= tile_tokens) return;
    float gathered = nothing;
    for (int i = 0; i < threads_of_token; ++i)
      gathered = combine(gathered, tile.parts[thread * threads_of_token + i]);
    out[thread] = gathered;
  });
}

struct Larger {
  HYDRASCOPE_BOTH float operator()(const float a, const float b) const { return larger(a, b); }
};
struct Sum {
  HYDRASCOPE_BOTH float operator()(const float a, const float b) const { return a + b; }
};

// Computes y and φ or log φ of the tokens in tile.x, which start with `first`.
template <typename Block>
HYDRASCOPE_BLOCK void make_features(Block& block, const HeadMap& map, const std::int64_t first,
                                    const Tokens& tokens, const Tile& tile) {
  using cpu::PointMap;
  const int outputs = map.outputs, width = map.inputs;
  const float* const y = tile.y;
  float* const squares = tile.token;
  if (map.half_square != 0)
    reduce(
        block, tile, width, 0.0f, [&](int t, int c) { return tile.x[t * width + c] * tile.x[t * width + c]; },
        Sum(), squares);
  const auto set_y = [&](const int t, const int o, const float product) {
    float value = map.scale * (map.bias == nullptr ? product : map.bias[o] + product);
    if (map.half_square != 0) value -= map.half_square * squares[t];
    tile.y[t * outputs + o] = value;
  };
  block.each([&](const int thread) {
    if (map.weight != nullptr && at_16_bytes(map.weight) && outputs % columns_of_thread == 0) {
      each_entry(thread, tile_tokens, outputs / columns_of_thread, [&](const int t, const int group) {
        const int o = group * columns_of_thread;
        float sum[columns_of_thread] = {};
        for (int c = 0; c < width; ++c)
          add_multiple(sum, tile.x[t * width + c], map.weight + c * outputs + o);
        HYDRASCOPE_UNROLL
        for (int i = 0; i < columns_of_thread; ++i) set_y(t, o + i, sum[i]);
      });
      return;
    }
    each_entry(thread, tile_tokens, outputs, [&](const int t, const int o) {
      const float* const x = tile.x + t * width;
      float sum = map.weight == nullptr ? x[o] : 0.0f;
      if (map.weight != nullptr) {
        HYDRASCOPE_KEEP_LOOP
        for (int c = 0; c < width; ++c) sum += x[c] * map.weight[c * outputs + o];
      }
      set_y(t, o, sum);
    });
  });
  // log Σ e^y, log Σ e^−y or both together; the norm.
  float* const plus = tile.token;
  float* const minus = tile.token + tile_tokens;
  float* const largest = tile.token + 2 * tile_tokens;
  const auto log_sum = [&](const float sign, float* const out) {
    reduce(
        block, tile, outputs, -INFINITY, [&](int t, int o) { return sign * y[t * outputs + o]; }, Larger(),
        largest);
    reduce(
        block, tile, outputs, 0.0f,
        [&](int t, int o) { return expf(sign * y[t * outputs + o] - largest[t]); }, Sum(), out);
    block.each([&](const int thread) {
      if (thread < tile_tokens) out[thread] = largest[thread] + logf(out[thread]);
    });
  };
  if (map.map == PointMap::softmax || map.map == PointMap::plus_minus_softmax ||
      map.map == PointMap::joint_softmax)
    log_sum(1, plus);
  if (map.map == PointMap::plus_minus_softmax || map.map == PointMap::joint_softmax) log_sum(-1, minus);
  if (map.map == PointMap::unit)
    reduce(
        block, tile, outputs, 0.0f, [&](int t, int o) { return y[t * outputs + o] * y[t * outputs + o]; },
        Sum(), plus);
  block.each([&](const int thread) {
    each_entry(thread, tile_tokens, outputs, [&](const int t, const int o) {
      const float value = y[t * outputs + o];
      float* const feature = tile.features + t * map.features + o;
      switch (map.map) {
        case PointMap::plus_minus_exponential:
          feature[0] = value;
          feature[outputs] = -value;
          break;
        case PointMap::exponential: feature[0] = value; break;
        case PointMap::softmax: feature[0] = value - plus[t]; break;
        case PointMap::plus_minus_softmax:
          feature[0] = value - plus[t];
          feature[outputs] = -value - minus[t];
          break;
        case PointMap::joint_softmax: {
          const float top = larger(plus[t], minus[t]);
          const float both = top + logf(expf(plus[t] - top) + expf(minus[t] - top));
          feature[0] = value - both;
          feature[outputs] = -value - both;
          break;
        }
        case PointMap::one_plus_elu: feature[0] = value < 0 ? expf(value) : 1 + value; break;
        case PointMap::relu: feature[0] = larger(value, 0.0f); break;
        case PointMap::unit: feature[0] = value / larger(sqrtf(plus[t]), 1e-12f); break;
        case PointMap::relu_token_weighted: {
          const std::int64_t token = first + t;
          const float* const turn = map.token_weights + 2 * (token < tokens.last ? token : 0);
          feature[0] = larger(value, 0.0f) * turn[0];
          feature[outputs] = larger(value, 0.0f) * turn[1];
          break;
        }
        case PointMap::taylor: break; // not taken
      }
    });
  });
}

} // namespace hydrascope::cuda
