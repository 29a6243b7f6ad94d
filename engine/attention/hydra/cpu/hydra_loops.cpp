// Hydra's loops over tokens, for the processor that HYDRASCOPE_CPU names. Nothing here calls a function that
// is not inlined (softmax_loops.cpp says why).
#include "engine/attention/hydra/cpu/hydra.h"
#include "engine/attention/simd/lanes.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// ‖x‖₁, or ‖x‖₂². Four independent sums: a single one would wait for the result of each addition.
template <bool squares>
HYDRASCOPE_INLINE float sum_of_row(const float* x, const std::int64_t padded) {
  constexpr std::int64_t sums_at_once = 4;
  Lanes sums[sums_at_once] = {};
  const auto add = [&](Lanes & sum, const std::int64_t f) __attribute__((always_inline)) {
    const Lanes part = load(x + f);
    sum += squares ? part * part : magnitude(part);
  };
  std::int64_t f = 0;
  for (; f + sums_at_once * lane_count <= padded; f += sums_at_once * lane_count) {
    HYDRASCOPE_UNROLL
    for (std::int64_t i = 0; i < sums_at_once; ++i) add(sums[i], f + i * lane_count);
  }
  for (; f < padded; f += lane_count) add(sums[0], f);
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// The factor φ(x)/x, where φ(x) is a multiple of x.
HYDRASCOPE_INLINE float factor_of(const RowMap map, const float* x, const std::int64_t padded,
                                  const float scale) {
  if (map != RowMap::unit_l1 && map != RowMap::unit_l2) return scale;
  constexpr float least = 1e-12F;
  const float norm =
      map == RowMap::unit_l2 ? __builtin_sqrtf(sum_of_row<true>(x, padded)) : sum_of_row<false>(x, padded);
  return 1 / (norm > least ? norm : least);
}

// Calls use(index, φ of the next features) with the map as a constant of the inner loop.
template <typename Use>
HYDRASCOPE_INLINE void map_row(const RowMap map, const float* x, const std::int64_t padded,
                               const float factor, const Use& use) {
  switch (map) {
    case RowMap::hyperbolic:
      for (std::int64_t f = 0; f < padded; f += lane_count) use(f, hyperbolic_tangent(load(x + f)));
      return;
    case RowMap::logistic:
      for (std::int64_t f = 0; f < padded; f += lane_count) use(f, logistic(load(x + f)));
      return;
    default:
      for (std::int64_t f = 0; f < padded; f += lane_count) use(f, load(x + f) * factor);
  }
}

// Where the next token's row lies, which is requested from memory while this one is processed; the row itself
// at the end of the range, and where it was copied to a buffer.
HYDRASCOPE_INLINE const float* next_row(const Rows& rows, const float* row, const float* buffer,
                                        const std::int64_t token, const TokenRange range) {
  return row == buffer || token + 1 == range.last ? row : row + rows.token_stride;
}

// Requests the cache line of a row's features from f on, once for all registers that it fills.
HYDRASCOPE_INLINE void request(const float* row, const std::int64_t f) {
  constexpr std::int64_t line = 16;
  if (lane_count == line || f % line == 0) __builtin_prefetch(row + f);
}

void sum_tokens(const Rows& k, const Rows& v, const unsigned char* mask, const TokenRange range,
                const RowMap map, const float scale, float* buffers, float* sum) {
  const std::int64_t padded = padded_to_lanes(k.width());
  for (std::int64_t token = range.first; token < range.last; ++token) {
    if (!real(mask, token)) continue;
    const float* const key = row_of(k, token, buffers);
    const float* const value = row_of(v, token, buffers + padded);
    const float* const next_key = next_row(k, key, buffers, token, range);
    const float* const next_value = next_row(v, value, buffers + padded, token, range);
    const float factor = factor_of(map, key, padded, scale);
    map_row(map, key, padded, factor, [&](const std::int64_t f, const Lanes& x) {
      request(next_key, f);
      request(next_value, f);
      store(sum + f, load(sum + f) + x * load(value + f));
    });
  }
}

void add_to(float* sum, float* part, const std::int64_t padded) {
  for (std::int64_t f = 0; f < padded; f += lane_count) {
    store(sum + f, load(sum + f) + load(part + f));
    store(part + f, Lanes{});
  }
}

void softmax_tokens(const Rows& k, const Rows& v, const unsigned char* mask, const TokenRange range,
                    float* buffers, float* largest, float* total, float* weighted) {
  const std::int64_t padded = padded_to_lanes(k.width());
  float* const before = buffers + 2 * padded;
  std::memcpy(before, largest, static_cast<std::size_t>(padded) * sizeof(float));
  for (std::int64_t token = range.first; token < range.last; ++token) {
    if (!real(mask, token)) continue;
    const float* const key = row_of(k, token, buffers);
    for (std::int64_t f = 0; f < padded; f += lane_count)
      store(largest + f, larger(load(key + f), load(largest + f)));
  }
  for (std::int64_t f = 0; f < padded; f += lane_count) {
    const Lanes shrunk = exponential(load(before + f) - load(largest + f));
    const Lanes old_total = load(total + f), old_weighted = load(weighted + f);
    // Zeros stay zero, also where there has been no token yet and the exponent is NaN.
    store(total + f, old_total == 0 ? old_total : old_total * shrunk);
    store(weighted + f, old_total == 0 ? old_weighted : old_weighted * shrunk);
  }
  for (std::int64_t token = range.first; token < range.last; ++token) {
    if (!real(mask, token)) continue;
    const float* const key = row_of(k, token, buffers);
    const float* const value = row_of(v, token, buffers + padded);
    const float* const next_value = next_row(v, value, buffers + padded, token, range);
    for (std::int64_t f = 0; f < padded; f += lane_count) {
      request(next_value, f);
      const Lanes share = exponential(load(key + f) - load(largest + f));
      store(total + f, load(total + f) + share);
      store(weighted + f, load(weighted + f) + share * load(value + f));
    }
  }
}

bool whole_lines(const float* row, const float* buffer) {
  return row != buffer && reinterpret_cast<std::uintptr_t>(row) % sizeof(Lanes) == 0;
}

void gate_tokens(const Rows& q, const unsigned char* mask, const TokenRange range, const RowMap map,
                 const float scale, const float* sum, const Rows& out, const bool past_caches,
                 float* buffers) {
  const std::int64_t padded = padded_to_lanes(q.width());
  for (std::int64_t token = range.first; token < range.last; ++token) {
    float* const result = place_of(out, token, buffers + padded);
    if (real(mask, token)) {
      const float* const query = row_of(q, token, buffers);
      const float* const next_query = next_row(q, query, buffers, token, range);
      const float factor = factor_of(map, query, padded, scale);
      if (past_caches && whole_lines(result, buffers + padded))
        map_row(map, query, padded, factor, [&](const std::int64_t f, const Lanes& x) {
          request(next_query, f);
          stream(result + f, x * load(sum + f));
        });
      else
        map_row(map, query, padded, factor, [&](const std::int64_t f, const Lanes& x) {
          request(next_query, f);
          store(result + f, x * load(sum + f));
        });
    } else {
      std::memset(result, 0, static_cast<std::size_t>(padded) * sizeof(float));
    }
    put_row(out, token, result);
  }
  streamed();
}

void causal_token(const Rows& q, const Rows& k, const Rows& v, const std::int64_t token,
                  const RowMap query_map, const RowMap key_map, const float scale, float* buffers,
                  const float* sum, float* part, const Rows& out) {
  const std::int64_t padded = padded_to_lanes(q.width());
  const float* const key = row_of(k, token, buffers);
  const float* const value = row_of(v, token, buffers + padded);
  map_row(
      key_map, key, padded, factor_of(key_map, key, padded, 1),
      [&](const std::int64_t f, const Lanes& x) { store(part + f, load(part + f) + x * load(value + f)); });
  const float* const query = row_of(q, token, buffers + 2 * padded);
  float* const result = place_of(out, token, buffers + 3 * padded);
  map_row(
      query_map, query, padded, factor_of(query_map, query, padded, scale),
      [&](const std::int64_t f, const Lanes& x) { store(result + f, x * (load(sum + f) + load(part + f))); });
  put_row(out, token, result);
}

void causal_softmax_token(const Rows& q, const Rows& k, const Rows& v, const std::int64_t token,
                          const RowMap query_map, float* buffers, float* largest, float* total,
                          float* weighted, const Rows& out) {
  const std::int64_t padded = padded_to_lanes(q.width());
  const float* const key = row_of(k, token, buffers);
  const float* const value = row_of(v, token, buffers + padded);
  for (std::int64_t f = 0; f < padded; f += lane_count) {
    const Lanes before = load(largest + f), own = load(key + f), top = larger(own, before);
    const Lanes share = exponential(own - top), shrunk = exponential(before - top);
    // Zeros stay zero, also where there has been no token yet and the exponent is infinite.
    const Lanes old_total = load(total + f), old_weighted = load(weighted + f);
    store(largest + f, top);
    store(total + f, (old_total == 0 ? old_total : old_total * shrunk) + share);
    store(weighted + f, (old_total == 0 ? old_weighted : old_weighted * shrunk) + share * load(value + f));
  }
  const float* const query = row_of(q, token, buffers + 2 * padded);
  float* const result = place_of(out, token, buffers + 3 * padded);
  map_row(query_map, query, padded, factor_of(query_map, query, padded, 1),
          [&](const std::int64_t f, const Lanes& x) {
            store(result + f, x * load(weighted + f) / load(total + f));
          });
  put_row(out, token, result);
}

constexpr HydraLoops loops{sum_tokens,  add_to,       softmax_tokens,
                           gate_tokens, causal_token, causal_softmax_token};

} // namespace

const HydraLoops& hydra_loops() { return loops; }

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
