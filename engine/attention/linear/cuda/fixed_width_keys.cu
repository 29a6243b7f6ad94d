// The sums over keys of fixed_width.cuh, and their means.
//
//   Keys: a warp has 16 of the 64 outputs of the map, and of each 16 tokens yᵀ = Wᵀ·kᵀ, φᵀ = [e^yᵀ, e^−yᵀ]
//   and Σ φᵀ·v. Features are divided by the largest so far; when a larger one comes, the sums are scaled.
//   Merge: the parts, each divided by a largest of its own, to means and weights of the features.
#include <cmath>
#include <cstring>

#include "engine/attention/linear/cuda/fixed_width.cuh"

namespace hydrascope::cuda {
namespace {

constexpr int key_threads = width / 16 * warp_threads;
constexpr int key_tile = 64; // tokens in shared memory, twice
constexpr int features_of_merge = block_threads / width;
constexpr float log_2 = 0.693147181f;
// A feature may be that many powers of two above the largest so far.
constexpr float headroom = 8;

// What rounding to a pair has left.
template <typename T>
__device__ Pair rest_of(const Pair pair, const float first, const float second) {
  T rounded[2];
  std::memcpy(rounded, &pair, sizeof pair);
  return pair_of<T>(first - to_float(rounded[0]), second - to_float(rounded[1]));
}

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

  // Rescales the sums to new maxima, taken over the real tokens of two groups of eight.
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

template <typename T>
cudaError_t keys_of(const LinearArguments& a, cudaStream_t stream) {
  constexpr std::size_t shared_bytes = sizeof(T) * 4 * key_tile * stride;
  static_assert(shared_bytes <= 48 * 1024);
  const cudaError_t outcome = launch_of(fixed_keys_kernel<T>, grid_of(a, linear_parts(a.tokens)), key_threads,
                                        shared_bytes, stream, a);
  if (outcome != cudaSuccess) return outcome;
  return launch(fixed_merge_kernel<T>, grid_of(a, features / features_of_merge), 0, stream, a);
}

} // namespace

bool fixed_width_takes_keys(const LinearArguments& a) {
  return takes(a, a.key) && aligned(a.k) && aligned(a.v);
}

cudaError_t fixed_width_keys(const LinearArguments& a, cudaStream_t stream) {
  return a.element == Element::float16 ? keys_of<__half>(a, stream) : keys_of<__nv_bfloat16>(a, stream);
}

} // namespace hydrascope::cuda
