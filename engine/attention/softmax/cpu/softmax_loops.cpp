// The loops of softmax attention, for the processor that HYDRASCOPE_CPU names. Nothing here calls a function
// that is not inlined: the linker might use a function of the standard library that is compiled for one
// processor for all of them.
#include "engine/attention/simd/products.h"
#include "engine/attention/softmax/cpu/softmax.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// The parts of the buffers.
struct SoftmaxSpace {
  SoftmaxSpace(const std::int64_t width, const std::int64_t value_width, float* buffers)
      : queries(buffers),
        sums(queries + queries_at_once * width),
        largest(sums + queries_at_once * value_width),
        totals(largest + queries_at_once),
        keys(totals + queries_at_once),
        columns(keys + keys_of_block * width),
        values(columns + keys_of_block * width),
        scores(values + keys_of_block * value_width),
        spare(scores + tokens_of_block * keys_of_block) {}

  float* queries; // (Q,d)
  float* sums;    // (Q,d): Σ_j e^(s_j − largest) v_j
  float* largest; // (Q): of the scores so far
  float* totals;  // (Q): Σ_j e^(s_j − largest)
  float* keys;    // (K,d)
  float* columns; // (d,K): the keys side by side
  float* values;  // (K,d)
  float* scores;  // (T,K)
  float* spare;   // the factors of a product, in bfloat16
};

// scores ← e^(scale · scores − the row's largest so far). Rescales the sums when the largest grows. Scores
// from `count` on, which belong to no key, become 0.
HYDRASCOPE_INLINE void make_weights(float* scores, const std::int64_t count, const float scale,
                                    float& largest, float& totals, float* sums,
                                    const std::int64_t value_width) {
  Lanes top = all(largest);
  for (std::int64_t j = 0; j < count; j += lane_count) {
    const Lanes score = load(scores + j) * scale;
    top = larger(present(j, count) ? score : top, top);
  }
  const float before = largest;
  largest = largest_of(top);
  if (before < largest && totals != 0) {
    const float shrunk = exponential(all(before - largest))[0];
    totals *= shrunk;
    for (std::int64_t f = 0; f < value_width; f += lane_count) store(sums + f, load(sums + f) * shrunk);
  }
  Lanes total{};
  for (std::int64_t j = 0; j < count; j += lane_count) {
    const Lanes power = exponential(load(scores + j) * scale - largest);
    const Lanes weight = present(j, count) ? power : Lanes{};
    store(scores + j, weight);
    total += weight;
  }
  totals += sum_of(total);
}

// The real tokens of a range up to `token`.
HYDRASCOPE_INLINE std::int64_t real_up_to(const std::int64_t token, const TokenRange range,
                                          const unsigned char* mask) {
  const std::int64_t last = token + 1 < range.last ? token + 1 : range.last;
  if (mask == nullptr) return last > range.first ? last - range.first : 0;
  std::int64_t count = 0;
  for (std::int64_t one = range.first; one < last; ++one) count += real(mask, one);
  return count;
}

void output_range(const Rows& q, const Rows& k, const Rows& v, const unsigned char* mask,
                  const TokenRange queries, const std::int64_t tokens, const bool causal, const float scale,
                  float* buffers, const Rows& out) {
  const std::int64_t width = padded_to_lanes(q.head_width), value_width = padded_to_lanes(v.head_width);
  const SoftmaxSpace space(width, value_width, buffers);
  const std::int64_t count = gather(q, mask, queries, space.queries), all_rows = whole_rows(count);
  clear(space.sums, all_rows * value_width);
  clear(space.totals, queries_at_once);
  for (std::int64_t row = 0; row < queries_at_once; ++row) space.largest[row] = -__builtin_inff();
  std::int64_t row_tokens[queries_at_once]; // of rows that fill up a block: the last
  std::int64_t filled = 0;
  for (std::int64_t token = queries.first; token < queries.last; ++token)
    if (real(mask, token)) row_tokens[filled++] = token;
  while (filled < all_rows) row_tokens[filled++] = queries.last - 1;

  const std::int64_t end = causal && queries.last < tokens ? queries.last : tokens;
  for (std::int64_t first = 0; first < end; first += keys_of_block) {
    const std::int64_t last = first + keys_of_block < end ? first + keys_of_block : end;
    const std::int64_t keys = gather(k, mask, {first, last}, space.keys), stride = padded_to_lanes(keys);
    if (keys == 0) continue;
    gather(v, mask, {first, last}, space.values);
    clear(space.keys + keys * width, (stride - keys) * width);
    clear(space.values + keys * value_width, (stride - keys) * value_width);
    for (std::int64_t key = 0; key < stride; key += lane_count)
      for (std::int64_t f = 0; f < width; f += lane_count)
        transpose_tile(space.keys + key * width + f, width, space.columns + f * stride + key, stride);
    for (std::int64_t row = 0; row < all_rows; row += tokens_of_block) {
      const std::int64_t rows = row + tokens_of_block < all_rows ? tokens_of_block : all_rows - row;
      if (causal && row_tokens[row + rows - 1] < first) continue;
      float* const sums = space.sums + row * value_width;
      clear(space.scores, rows * stride);
      add_rows_times(space.queries + row * width, rows, width, space.columns, stride, space.scores,
                     space.spare);
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t seen = causal ? real_up_to(row_tokens[row + i], {first, last}, mask) : keys;
        float* const scores = space.scores + i * stride;
        if (seen > 0)
          make_weights(scores, seen, scale, space.largest[row + i], space.totals[row + i],
                       sums + i * value_width, value_width);
        clear(scores + padded_to_lanes(seen), stride - padded_to_lanes(seen));
      }
      add_rows_times(space.scores, rows, stride, space.values, value_width, sums, space.spare);
    }
  }

  std::int64_t row = 0;
  for (std::int64_t token = queries.first; token < queries.last; ++token) {
    float* result = space.keys; // of a masked token 0
    if (real(mask, token)) {
      result = space.sums + row * value_width;
      const Lanes divisor = all(space.totals[row++]);
      for (std::int64_t f = 0; f < value_width; f += lane_count)
        store(result + f, load(result + f) / divisor);
    } else {
      clear(result, value_width);
    }
    put_row(out, token, result);
  }
}

constexpr SoftmaxLoops loops{output_range};

} // namespace

const SoftmaxLoops& softmax_loops() { return loops; }

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
