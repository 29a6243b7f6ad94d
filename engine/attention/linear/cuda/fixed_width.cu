// Linear attention with Hedgehog's map for heads of 64 features in a half type. Where linear_programs.h keeps
// features in shared memory, here they stay in registers: what one product on the tensor cores gives is, once
// it is rounded, the left factor of the next (warp_matrix.cuh).
//
//   Keys: a warp has 16 of the 64 outputs of the map, and of each 16 tokens yᵀ = Wᵀ·kᵀ, φᵀ = [e^yᵀ, e^−yᵀ]
//   and Σ φᵀ·v. Features are divided by the largest so far; when a larger one comes, the sums are scaled.
//   Merge: the parts, each divided by a largest of its own, to means and weights of the features.
//   Queries: a warp has 16 tokens and of them y = q·W, a = φ(q)·z over its largest, and a·means over Σ a.
//
// y is in units of log 2: log₂e and the map's scale are multiplied into W, which is the sum of two matrices
// of the half type, so that it is as good as in float32 beside inputs that have the half type's precision.
#include "engine/attention/linear/cuda/fixed_width.h"

#include <cmath>
#include <cstring>

#include "engine/attention/cuda/device.cuh"
#include "engine/attention/cuda/warp_matrix.cuh"
#include "engine/attention/linear/cuda/linear_programs.h"
#include "engine/attention/linear/cuda/linear_tile.h"

namespace hydrascope::cuda {
namespace {

constexpr int width = 64; // of a head, and of y
constexpr int signs = 2;  // of y in φ
constexpr int features = signs * width;
constexpr int stride = width + 8; // of rows in shared memory: eight of them lie in different banks
constexpr int pieces = width / 8; // of 16 bytes, of a row
constexpr int steps = width / 16; // of a product over 64
constexpr int squares = width / 8;
constexpr int group_tokens = 16; // that a warp works on at a time
constexpr int key_threads = width / 16 * warp_threads;
constexpr int key_tile = 64; // tokens in shared memory, twice
constexpr int query_warps = block_threads / warp_threads;
constexpr int features_of_merge = block_threads / width;
constexpr float log2_e = 1.44269504f, log_2 = 0.693147181f;
// A feature may be that many powers of two above the largest so far.
constexpr float headroom = 8;

template <typename T>
struct Rows {
  const T* data;
  std::int64_t token_stride;
  __device__ Rows(const HeadsOnDevice& x, const std::int64_t b, const std::int64_t h)
      : data(static_cast<const T*>(x.data) + b * x.batch_stride + h * x.head_stride),
        token_stride(x.token_stride) {}
  const __device__ T* piece(const std::int64_t token, const int index) const {
    return data + token * token_stride + index * 8;
  }
};

// An entry of W as the sum of two numbers of a half type.
template <typename T>
struct Split {
  T high, low;
  __device__ explicit Split(const float value)
      : high(from_float<T>(value)), low(from_float<T>(value - to_float(high))) {}
};

// log₂e · scale · W of a head; y is that of x without the bias.
struct Weight {
  const float* of_head; // null: the identity
  float scale;
  __device__ Weight(const SideArguments& side, const std::int64_t h)
      : of_head(side.weight == nullptr ? nullptr : side.weight + h * side.weight_stride),
        scale(side.scale * log2_e) {}
  __device__ float operator()(const int input, const int output) const {
    const float own = of_head == nullptr ? (input == output ? 1.0f : 0.0f) : of_head[input * width + output];
    return own * scale;
  }
};
// What the bias adds to log φ of a feature.
__device__ float bias_of(const SideArguments& side, const std::int64_t h, const int feature) {
  if (side.bias == nullptr) return 0.0f;
  const float bias = side.scale * side.bias[h * width + feature % width];
  return feature < width ? bias : -bias;
}

// What rounding to a pair has left.
template <typename T>
__device__ Pair rest_of(const Pair pair, const float first, const float second) {
  T rounded[2];
  std::memcpy(rounded, &pair, sizeof pair);
  return pair_of<T>(first - to_float(rounded[0]), second - to_float(rounded[1]));
}

// Row and column of entry i of a lane in a product.
__device__ int row_of(const int lane, const int i) { return lane / 4 + i / 2 * 8; }
__device__ int column_of(const int lane, const int i) { return lane % 4 * 2 + i % 2; }

// Two products of 16 × 8 side by side, rounded, as a left factor of 16 × 16.
template <typename T>
__device__ void as_left_factor(const float (&left)[4], const float (&right)[4], Pair (&to)[4]) {
  to[0] = pair_of<T>(left[0], left[1]);
  to[1] = pair_of<T>(left[2], left[3]);
  to[2] = pair_of<T>(right[0], right[1]);
  to[3] = pair_of<T>(right[2], right[3]);
}

// ---- Keys

// Rows of W, transposed, as left factors over the inputs.
template <typename T>
struct WeightRows {
  Pair high[steps][4], low[steps][4];
  __device__ WeightRows(const Weight& weight, const int first_output, const int lane) {
    HYDRASCOPE_UNROLL
    for (int step = 0; step < steps; ++step) {
      HYDRASCOPE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int output = first_output + lane / 4 + i % 2 * 8, input = step * 16 + lane % 4 * 2 + i / 2 * 8;
        const float first = weight(input, output), second = weight(input + 1, output);
        high[step][i] = pair_of<T>(first, second);
        low[step][i] = rest_of<T>(high[step][i], first, second);
      }
    }
  }
};

// A warp's sums over keys: of the features of 16 outputs with both signs.
struct Sums {
  float values[signs][squares][4]; // 16 × 64
  float totals[signs][4];          // Σ φ, in each column
  float largest[signs][2];         // of rows g and g + 8

  // Divides by larger largest, those of what is real of y of two times eight tokens.
  __device__ void raise(const float (&y)[2][4], const bool (&real)[2][2]) {
    HYDRASCOPE_UNROLL
    for (int sign = 0; sign < signs; ++sign) {
      HYDRASCOPE_UNROLL
      for (int half = 0; half < 2; ++half) {
        float most = largest[sign][half];
        HYDRASCOPE_UNROLL
        for (int i = 0; i < 4; ++i) {
          const float own = y[i / 2][2 * half + i % 2];
          if (real[i / 2][i % 2]) most = fmaxf(most, sign == 0 ? own : -own); // NaN is left to the sums
        }
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        const float factor = most == largest[sign][half] ? 1.0f : power_of_two(largest[sign][half] - most);
        largest[sign][half] = most;
        HYDRASCOPE_UNROLL
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          totals[sign][i] *= factor;
          HYDRASCOPE_UNROLL
          for (int square = 0; square < squares; ++square) values[sign][square][i] *= factor;
        }
      }
    }
  }
};

template <typename T>
__global__ __launch_bounds__(key_threads, 3) void fixed_keys_kernel(const LinearArguments a) {
  HYDRASCOPE_SHARED_MEMORY(memory);
  T* const shared = reinterpret_cast<T*>(memory); // two of: keys, values
  constexpr int rows = key_tile * stride;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % warp_threads;
  const int first_output = thread / warp_threads * 16, part = static_cast<int>(blockIdx.x);
  const std::int64_t h = blockIdx.y, b = blockIdx.z;
  const Rows<T> keys(a.k, b, h), values(a.v, b, h);
  const Tokens tokens = part_of(a, b, part);

  const auto start_copies = [&](const std::int64_t first, const int buffer) {
    if (first < tokens.last) {
      const int piece = thread % pieces;
      HYDRASCOPE_UNROLL
      for (int i = 0; i < key_tile * pieces / key_threads; ++i) {
        const int row = thread / pieces + i * (key_threads / pieces);
        const bool real = tokens.real(first + row);
        const std::int64_t token = real ? first + row : 0;
        T* const to = shared + 2 * buffer * rows + row * stride + piece * 8;
        start_copy(to, keys.piece(token, piece), real);
        start_copy(to + rows, values.piece(token, piece), real);
      }
    }
    end_group_of_copies();
  };
  start_copies(tokens.first, 0);

  const WeightRows<T> weight(Weight(a.key, h), first_output, lane);
  const Pair one = pair_of<T>(1.0f, 1.0f);
  Sums sums{};
  for (auto& of_sign : sums.largest)
    for (float& largest : of_sign) largest = -INFINITY;

  int buffer = 0;
  for (std::int64_t first = tokens.first; first < tokens.last; first += key_tile, buffer ^= 1) {
    start_copies(first + key_tile, buffer ^ 1);
    finish_copies<1>();
    __syncthreads();
    const bool all_real = a.mask == nullptr && first + key_tile <= tokens.last;
    HYDRASCOPE_KEEP_LOOP
    for (int group = 0; group < key_tile; group += group_tokens) {
      const T* const of_group = shared + 2 * buffer * rows + group * stride;
      float y[2][4] = {}; // 16 outputs of two times eight tokens
      HYDRASCOPE_UNROLL
      for (int step = 0; step < steps; ++step) {
        Pair x[4];
        load_squares<false>(x, of_group + (lane % 8 + lane / 16 * 8) * stride + step * 16 + lane / 8 % 2 * 8);
        HYDRASCOPE_UNROLL
        for (int half = 0; half < 2; ++half) {
          multiply_add<T>(y[half], weight.high[step], x[2 * half], x[2 * half + 1]);
          multiply_add<T>(y[half], weight.low[step], x[2 * half], x[2 * half + 1]);
        }
      }
      bool real[2][2] = {{true, true}, {true, true}};
      if (!all_real)
        for (int i = 0; i < 4; ++i)
          real[i / 2][i % 2] = tokens.real(first + group + i / 2 * 8 + lane % 4 * 2 + i % 2);
      // log₂ φ over the largest.
      const auto logarithm = [&](const int sign, const int half, const int i) {
        const float own = sign == 0 ? y[half][i] : -y[half][i];
        const float over_largest = own - sums.largest[sign][i / 2];
        return real[half][i % 2] ? over_largest : -INFINITY;
      };
      float most = -INFINITY;
      HYDRASCOPE_UNROLL
      for (int i = 0; i < 16; ++i) most = fmaxf(most, logarithm(i / 8, i / 4 % 2, i % 4));
      if (__any_sync(0xffffffffu, most > headroom)) sums.raise(y, real);

      Pair phi[signs][4];
      HYDRASCOPE_UNROLL
      for (int sign = 0; sign < signs; ++sign) {
        float power[2][4];
        HYDRASCOPE_UNROLL
        for (int i = 0; i < 8; ++i) power[i / 4][i % 4] = power_of_two(logarithm(sign, i / 4, i % 4));
        as_left_factor<T>(power[0], power[1], phi[sign]);
        multiply_add<T>(sums.totals[sign], phi[sign], one, one);
      }
      HYDRASCOPE_UNROLL
      for (int square = 0; square < squares; square += 2) {
        Pair v[4];
        load_squares<true>(v, of_group + rows + lane % 16 * stride + square * 8 + lane / 16 * 8);
        HYDRASCOPE_UNROLL
        for (int sign = 0; sign < signs; ++sign) {
          multiply_add<T>(sums.values[sign][square], phi[sign], v[0], v[1]);
          multiply_add<T>(sums.values[sign][square + 1], phi[sign], v[2], v[3]);
        }
      }
    }
    __syncthreads(); // before these tokens are overwritten
  }

  const HeadSpace space = head_space(a, b * a.heads + h);
  HYDRASCOPE_UNROLL
  for (int sign = 0; sign < signs; ++sign) {
    HYDRASCOPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int feature = sign * width + first_output + row_of(lane, 2 * half);
      const int index = part * features + feature;
      HYDRASCOPE_UNROLL
      for (int square = 0; square < squares; ++square) {
        const Piece<float, 2> piece{
            {sums.values[sign][square][2 * half], sums.values[sign][square][2 * half + 1]}};
        store(space.part_values + static_cast<std::int64_t>(index) * width + square * 8 + column_of(lane, 0),
              piece);
      }
      if (lane % 4 == 0) {
        space.part_totals[index] = sums.totals[sign][2 * half];
        space.part_largest[index] = sums.largest[sign][half];
      }
    }
  }
}

// ---- Merge: a thread for each entry of the means.

template <typename T>
__global__ void fixed_merge_kernel(const LinearArguments a) {
  const std::int64_t h = blockIdx.y, b = blockIdx.z;
  const int thread = static_cast<int>(threadIdx.x), column = thread % width;
  const int feature = static_cast<int>(blockIdx.x) * features_of_merge + thread / width;
  const int parts = linear_parts(a.tokens);
  const HeadSpace space = head_space(a, b * a.heads + h);
  float largest = -INFINITY;
  for (int part = 0; part < parts; ++part)
    largest = fmaxf(largest, space.part_largest[part * features + feature]);
  if (largest == -INFINITY) largest = 0; // no keys
  float total = 0, sum = 0;
  for (int part = 0; part < parts; ++part) { // in a fixed order, so that results are reproducible to the bit
    const int index = part * features + feature;
    const float factor = power_of_two(space.part_largest[index] - largest);
    total += space.part_totals[index] * factor;
    sum += space.part_values[static_cast<std::int64_t>(index) * width + column] * factor;
  }
  const float mean = over(sum, total);
  const int index = feature * width + column;
  const T rounded = from_float<T>(mean);
  space.means[index] = mean;
  reinterpret_cast<T*>(space.half_means)[index] = rounded;
  reinterpret_cast<T*>(space.half_rests)[index] = from_float<T>(mean - to_float(rounded));
  if (column == 0) space.weights[feature] = largest * log_2 + bias_of(a.key, h, feature) + logf(total);
}

// ---- Queries

// A block's shared memory.
template <typename T>
struct QueryMemory {
  T high[width * stride], low[width * stride]; // W
  T means[features * stride];
  float weights[features]; // log₂ of z, with the bias
};

// A row of queries is read as the lane's pieces q and q + 4. The inputs of a step of the product are numbered
// accordingly: input 8·piece + 4·(step % 2) + 2·j + i is number 8·j + 2·q + i of step.
__device__ int place_of_input(const int input) {
  const int piece = input / 8, step = piece / 4 * 2 + input % 8 / 4;
  return step * 16 + input % 4 / 2 * 8 + piece % 4 * 2 + input % 2;
}
// In the product likewise, so that a lane has eight neighbouring columns to write.
__device__ int place_of_column(const int column) {
  const int piece = column / 8, square = piece / 4 * 4 + column % 8 / 2;
  return square * 8 + piece % 4 * 2 + column % 2;
}

// One of a query's rows that a lane shares with three others.
template <typename T>
struct QueryRow {
  Pair pairs[2][4]; // of pieces q and q + 4
  bool real;
  __device__ QueryRow(const Rows<T>& queries, const Tokens& tokens, const std::int64_t token, const int lane)
      : pairs{}, real(tokens.real(token)) {
    if (!real) return;
    HYDRASCOPE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const auto piece = *reinterpret_cast<const Piece<Pair, 4>*>(queries.piece(token, lane % 4 + 4 * i));
      HYDRASCOPE_UNROLL
      for (int j = 0; j < 4; ++j) pairs[i][j] = piece.at[j];
    }
  }
};

// to = W, split, and the means, at their places.
template <typename T>
__device__ void fill(QueryMemory<T>& to, const LinearArguments& a, const HeadSpace& space,
                     const std::int64_t h) {
  const int thread = static_cast<int>(threadIdx.x);
  const Weight weight(a.query, h);
  for (int i = thread; i < width * width; i += block_threads) {
    const int input = i / width, output = i % width;
    const Split<T> split(weight(input, output));
    to.high[place_of_input(input) * stride + output] = split.high;
    to.low[place_of_input(input) * stride + output] = split.low;
  }
  for (int i = thread; i < features * pieces; i += block_threads) {
    const int feature = i / pieces, column = i % pieces * 8;
    const auto piece = reinterpret_cast<const Piece<Pair, 4>*>(space.half_means)[i];
    HYDRASCOPE_UNROLL
    for (int j = 0; j < 4; ++j)
      reinterpret_cast<Pair*>(to.means)[(feature * stride + place_of_column(column + 2 * j)) / 2] =
          piece.at[j];
  }
  for (int feature = thread; feature < features; feature += block_threads)
    to.weights[feature] = log2_e * (space.weights[feature] + bias_of(a.query, h, feature));
}

template <typename T>
__global__ __launch_bounds__(block_threads, 2) void fixed_queries_kernel(const LinearArguments a,
                                                                         const int groups_of_warp) {
  HYDRASCOPE_SHARED_MEMORY(memory);
  QueryMemory<T>& shared = *reinterpret_cast<QueryMemory<T>*>(memory);
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const std::int64_t h = blockIdx.y, b = blockIdx.z;
  const Rows<T> queries(a.q, b, h);
  const Tokens tokens{a.mask == nullptr ? nullptr : a.mask + b * a.tokens, 0, a.tokens};
  fill(shared, a, head_space(a, b * a.heads + h), h);
  __syncthreads();

  const Pair one = pair_of<T>(1.0f, 1.0f);
  const int offset = lane % 16 * stride + lane / 16 * 8; // of a lane's row in two squares below two others
  std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * groups_of_warp * query_warps +
                        static_cast<int>(threadIdx.x) / warp_threads) *
                       group_tokens;
  HYDRASCOPE_KEEP_LOOP
  for (int group = 0; group < groups_of_warp; ++group, first += query_warps * group_tokens) {
    if (first >= a.tokens) return;
    const QueryRow<T> rows[2] = {{queries, tokens, first + row_of(lane, 0), lane},
                                 {queries, tokens, first + row_of(lane, 2), lane}};
    float y[squares][4] = {};
    HYDRASCOPE_UNROLL
    for (int step = 0; step < steps; ++step) {
      const int pair = step % 2 * 2;
      const Pair x[4] = {rows[0].pairs[step / 2][pair], rows[1].pairs[step / 2][pair],
                         rows[0].pairs[step / 2][pair + 1], rows[1].pairs[step / 2][pair + 1]};
      HYDRASCOPE_UNROLL
      for (int square = 0; square < squares; square += 2) {
        const auto multiply = [&](const T* const factor) {
          Pair w[4];
          load_squares<true>(w, factor + step * 16 * stride + square * 8 + offset);
          multiply_add<T>(y[square], x, w[0], w[1]);
          multiply_add<T>(y[square + 1], x, w[2], w[3]);
        };
        multiply(shared.high);
        multiply(shared.low);
      }
    }

    // log₂ a, then a, divided by the largest of the row; what is −∞ for all features stays 0.
    const auto logarithm = [&](const int sign, const int square, const int i) {
      const float weight = shared.weights[sign * width + square * 8 + column_of(lane, i)];
      return sign == 0 ? weight + y[square][i] : weight - y[square][i];
    };
    float largest[2] = {-INFINITY, -INFINITY};
    HYDRASCOPE_UNROLL
    for (int square = 0; square < squares; ++square) {
      HYDRASCOPE_UNROLL
      for (int i = 0; i < 4; ++i)
        largest[i / 2] = fmaxf(largest[i / 2], fmaxf(logarithm(0, square, i), logarithm(1, square, i)));
    }
    HYDRASCOPE_UNROLL
    for (float& of_row : largest) {
      of_row = fmaxf(of_row, __shfl_xor_sync(0xffffffffu, of_row, 1));
      of_row = fmaxf(of_row, __shfl_xor_sync(0xffffffffu, of_row, 2));
      if (of_row == -INFINITY) of_row = 0;
    }

    float out[squares][4] = {}, total[4] = {};
    HYDRASCOPE_UNROLL
    for (int sign = 0; sign < signs; ++sign) {
      HYDRASCOPE_UNROLL
      for (int step = 0; step < steps; ++step) {
        float power[2][4];
        HYDRASCOPE_UNROLL
        for (int i = 0; i < 8; ++i)
          power[i / 4][i % 4] = power_of_two(logarithm(sign, 2 * step + i / 4, i % 4) - largest[i % 4 / 2]);
        Pair share[4];
        as_left_factor<T>(power[0], power[1], share);
        multiply_add<T>(total, share, one, one);
        HYDRASCOPE_UNROLL
        for (int square = 0; square < squares; square += 2) {
          Pair mean[4];
          load_squares<true>(mean, shared.means + (sign * width + step * 16) * stride + square * 8 + offset);
          multiply_add<T>(out[square], share, mean[0], mean[1]);
          multiply_add<T>(out[square + 1], share, mean[2], mean[3]);
        }
      }
    }

    HYDRASCOPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const std::int64_t token = first + row_of(lane, 2 * half);
      if (token >= a.tokens) continue;
      const float sum = total[2 * half];
      if (lane % 4 == 0 && rows[half].real && sum == 0) atomicAdd(reinterpret_cast<int*>(a.workspace), 1);
      const float factor = sum == 0 || !rows[half].real ? 0.0f : __fdividef(1.0f, sum);
      T* const to = static_cast<T*>(a.out) + ((b * a.tokens + token) * a.heads + h) * width;
      HYDRASCOPE_UNROLL
      for (int i = 0; i < 2; ++i) {
        Piece<Pair, 4> piece;
        HYDRASCOPE_UNROLL
        for (int j = 0; j < 4; ++j)
          piece.at[j] = pair_of<T>(out[4 * i + j][2 * half] * factor, out[4 * i + j][2 * half + 1] * factor);
        store(reinterpret_cast<Pair*>(to + (lane % 4 + 4 * i) * 8), piece);
      }
    }
  }
}

// ---- Launches

bool takes(const LinearArguments& a, const SideArguments& side) {
  return a.map == cpu::PointMap::plus_minus_exponential && a.normalised && a.element != Element::float32 &&
         a.input_element == a.element && a.head_width == width && a.inputs == width && a.outputs == width &&
         side.half_square == 0;
}
bool aligned(const HeadsOnDevice& x) {
  return at_16_bytes(x.data) && x.batch_stride % 8 == 0 && x.head_stride % 8 == 0 && x.token_stride % 8 == 0;
}

dim3 grid_of(const LinearArguments& a, const std::int64_t x) {
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>(a.heads), static_cast<unsigned>(a.batch));
}

template <typename T>
cudaError_t keys_of(const LinearArguments& a, cudaStream_t stream) {
  constexpr std::size_t shared_bytes = sizeof(T) * 4 * key_tile * stride;
  static_assert(shared_bytes <= 48 * 1024);
  const cudaError_t outcome = launch_of(fixed_keys_kernel<T>, grid_of(a, linear_parts(a.tokens)), key_threads,
                                        shared_bytes, stream, a);
  if (outcome != cudaSuccess) return outcome;
  return launch(fixed_merge_kernel<T>, grid_of(a, features / features_of_merge), 0, stream, a);
}

template <typename T>
cudaError_t queries_of(const LinearArguments& a, cudaStream_t stream) {
  static_assert(sizeof(QueryMemory<T>) <= 48 * 1024);
  // Enough blocks to fill a GPU, few enough that W and the means are not copied for a handful of tokens.
  const int groups_of_warp = a.tokens < 4096 ? 1 : 4;
  const std::int64_t tokens = groups_of_warp * query_warps * group_tokens;
  return launch(fixed_queries_kernel<T>, grid_of(a, (a.tokens + tokens - 1) / tokens), sizeof(QueryMemory<T>),
                stream, a, groups_of_warp);
}

} // namespace

bool fixed_width_takes_keys(const LinearArguments& a) {
  return takes(a, a.key) && aligned(a.k) && aligned(a.v);
}
bool fixed_width_takes_queries(const LinearArguments& a) {
  return takes(a, a.query) && aligned(a.q) && at_16_bytes(a.out);
}

cudaError_t fixed_width_keys(const LinearArguments& a, cudaStream_t stream) {
  return a.element == Element::float16 ? keys_of<__half>(a, stream) : keys_of<__nv_bfloat16>(a, stream);
}
cudaError_t fixed_width_queries(const LinearArguments& a, cudaStream_t stream) {
  return a.element == Element::float16 ? queries_of<__half>(a, stream) : queries_of<__nv_bfloat16>(a, stream);
}

} // namespace hydrascope::cuda
