// The loops over cached keys and values, for the processor that HYDRASCOPE_CPU names. Nothing here calls a
// function that is not inlined (softmax_loops.cpp says why).
#include "engine/attention/simd/products.h"
#include "engine/attention/softmax/cpu/cache.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

constexpr std::int64_t piece = registers_at_once * lane_count;

// Distance of the prefetch, in rows: a feature of a tile's keys, or one token's values.
constexpr std::int64_t rows_ahead = 32;

// Scores of a tile's tokens for `group` queries, rows of `scores` apart by `stride`.
template <std::int64_t group, typename Number>
HYDRASCOPE_INLINE void score_tile(const float* q, const std::int64_t width, const Number* keys, float* scores,
                                  const std::int64_t stride) {
  for (std::int64_t first = 0; first < tokens_of_block; first += piece) {
    Lanes sum[group][registers_at_once] = {};
    for (std::int64_t f = 0; f < width; ++f) {
      Lanes key[registers_at_once];
      HYDRASCOPE_UNROLL
      for (std::int64_t r = 0; r < registers_at_once; ++r)
        key[r] = load(keys + f * tokens_of_block + first + r * lane_count);
      prefetch<piece>(keys + (f + rows_ahead) * tokens_of_block + first);
      HYDRASCOPE_UNROLL
      for (std::int64_t g = 0; g < group; ++g) {
        const Lanes factor = q[g * width + f] - Lanes{};
        HYDRASCOPE_UNROLL
        for (std::int64_t r = 0; r < registers_at_once; ++r) sum[g][r] += factor * key[r];
      }
    }
    HYDRASCOPE_UNROLL
    for (std::int64_t g = 0; g < group; ++g) HYDRASCOPE_UNROLL
    for (std::int64_t r = 0; r < registers_at_once; ++r)
      store(scores + g * stride + first + r * lane_count, sum[g][r]);
  }
}

// sums (group,padded) = Σ_j weights_j v_j over `count` tokens.
template <std::int64_t group, typename Number>
HYDRASCOPE_INLINE void gather_values(const float* weights, const std::int64_t stride,
                                     const std::int64_t count, const Number* values,
                                     const std::int64_t padded, float* sums) {
  const auto add = [&]<std::int64_t registers>(const std::int64_t f) __attribute__((always_inline)) {
    Lanes sum[group][registers] = {};
    for (std::int64_t j = 0; j < count; ++j) {
      Lanes value[registers];
      HYDRASCOPE_UNROLL
      for (std::int64_t r = 0; r < registers; ++r) value[r] = load(values + j * padded + f + r * lane_count);
      prefetch<registers * lane_count>(values + (j + rows_ahead) * padded + f);
      HYDRASCOPE_UNROLL
      for (std::int64_t g = 0; g < group; ++g) {
        const Lanes weight = weights[g * stride + j] - Lanes{};
        HYDRASCOPE_UNROLL
        for (std::int64_t r = 0; r < registers; ++r) sum[g][r] += weight * value[r];
      }
    }
    HYDRASCOPE_UNROLL
    for (std::int64_t g = 0; g < group; ++g) HYDRASCOPE_UNROLL
    for (std::int64_t r = 0; r < registers; ++r) store(sums + g * padded + f + r * lane_count, sum[g][r]);
  };
  std::int64_t f = 0;
  for (; f + piece <= padded; f += piece) add.template operator()<registers_at_once>(f);
  for (; f < padded; f += lane_count) add.template operator()<1>(f);
}

// scores ← e^(score − the largest), 0 from `count` on up to a whole register.
HYDRASCOPE_INLINE void make_shares(float* scores, const std::int64_t count, float* largest, float* total) {
  Lanes top = all(-__builtin_inff());
  for (std::int64_t j = 0; j < count; j += lane_count)
    top = larger(present(j, count) ? load(scores + j) : top, top);
  const float most = largest_of(top);
  Lanes sum{};
  for (std::int64_t j = 0; j < count; j += lane_count) {
    const Lanes power = exponential(load(scores + j) - most);
    const Lanes share = present(j, count) ? power : Lanes{};
    store(scores + j, share);
    sum += share;
  }
  *largest = most;
  *total = sum_of(sum);
}

template <std::int64_t group, typename Number>
HYDRASCOPE_INLINE void part_of_group(const float* q, const CachedHead& head, const TokenRange range,
                                     float* buffers, float* largest, float* totals, float* sums) {
  const std::int64_t width = head.head_width, padded = padded_to_lanes(width),
                     count = range.last - range.first;
  const auto* const keys = static_cast<const Number*>(head.keys);
  const auto* const values = static_cast<const Number*>(head.values);
  for (std::int64_t token = 0; token < count; token += tokens_of_block)
    score_tile<group>(q, width, keys + (range.first + token) * width, buffers + token, cached_tokens_at_once);
  for (std::int64_t g = 0; g < group; ++g)
    make_shares(buffers + g * cached_tokens_at_once, count, largest + g, totals + g);
  gather_values<group>(buffers, cached_tokens_at_once, count, values + range.first * padded, padded, sums);
}

template <typename Number>
HYDRASCOPE_INLINE void part_of_head(const float* q, const std::int64_t group, const CachedHead& head,
                                    const TokenRange range, float* buffers, float* largest, float* totals,
                                    float* sums) {
  const std::int64_t width = head.head_width, padded = padded_to_lanes(width);
  const auto take = [&]<std::int64_t count>(const std::int64_t first) __attribute__((always_inline)) {
    part_of_group<count, Number>(q + first * width, head, range, buffers + first * cached_tokens_at_once,
                                 largest + first, totals + first, sums + first * padded);
  };
  std::int64_t first = 0;
  for (; group - first >= 4; first += 4) take.template operator()<4>(first);
  if (group - first == 3) take.template operator()<3>(first);
  if (group - first == 2) take.template operator()<2>(first);
  if (group - first == 1) take.template operator()<1>(first);
}

void part(const float* q, const std::int64_t group, const CachedHead& head, const TokenRange range,
          float* buffers, float* largest, float* totals, float* sums) {
  if (head.element == Element::bfloat16)
    part_of_head<std::uint16_t>(q, group, head, range, buffers, largest, totals, sums);
  else
    part_of_head<float>(q, group, head, range, buffers, largest, totals, sums);
}

constexpr CacheLoops loops{part};

} // namespace

const CacheLoops& cache_loops() { return loops; }

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
