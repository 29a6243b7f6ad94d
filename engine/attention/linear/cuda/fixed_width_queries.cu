// The outputs of fixed_width.cuh: a warp has 16 queries, and of them y = q·W, a = φ(q)·z over its largest,
// and a·means over Σ a.
#include <cmath>

#include "engine/attention/linear/cuda/fixed_width.cuh"

namespace hydrascope::cuda {
namespace {

constexpr int query_warps = block_threads / warp_threads;

// An entry of W as the sum of two numbers of a half type.
template <typename T>
struct Split {
  T high, low;
  __device__ explicit Split(const float value)
      : high(from_float<T>(value)), low(from_float<T>(value - to_float(high))) {}
};

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
      // What is not kept is replaced and not multiplied by 0: the means may be NaN or infinite.
      const bool kept = rows[half].real && sum != 0;
      const float factor = __fdividef(1.0f, sum);
      T* const to = static_cast<T*>(a.out) + ((b * a.tokens + token) * a.heads + h) * width;
      HYDRASCOPE_UNROLL
      for (int i = 0; i < 2; ++i) {
        Piece<Pair, 4> piece;
        HYDRASCOPE_UNROLL
        for (int j = 0; j < 4; ++j)
          piece.at[j] =
              kept ? pair_of<T>(out[4 * i + j][2 * half] * factor, out[4 * i + j][2 * half + 1] * factor) : 0;
        store(reinterpret_cast<Pair*>(to + (lane % 4 + 4 * i) * 8), piece);
      }
    }
  }
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

bool fixed_width_takes_queries(const LinearArguments& a) {
  return takes(a, a.query) && aligned(a.q) && at_16_bytes(a.out);
}

cudaError_t fixed_width_queries(const LinearArguments& a, cudaStream_t stream) {
  return a.element == Element::float16 ? queries_of<__half>(a, stream) : queries_of<__nv_bfloat16>(a, stream);
}

} // namespace hydrascope::cuda
