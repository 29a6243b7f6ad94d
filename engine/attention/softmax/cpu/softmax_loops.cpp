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
        rows(scores + tokens_of_block * keys_of_block) {}

  // Factors of products are floats or, in half of their place, pairs of bfloat16 numbers.
  float* queries; // (Q,d): factors
  float* sums;    // (Q,d): Σ_j e^(s_j − largest) v_j
  float* largest; // (Q): of the scores so far
  float* totals;  // (Q): Σ_j e^(s_j − largest)
  float* keys;    // (K,d): factors
  float* columns; // (d,K): the keys side by side
  float* values;  // (K,d): factors
  float* scores;  // (T,K); weights are factors, each row of them at the start of its scores
  float* rows;    // (2,d)
};

// Calls use(j, score · scale) for `count` scores, a register at a time. Those behind them become `other`.
template <typename Use>
HYDRASCOPE_INLINE void scaled_scores(const float* scores, const std::int64_t count, const float scale,
                                     const float other, const Use& use) {
  std::int64_t j = 0;
  for (; j + lane_count <= count; j += lane_count) use(j, load(scores + j) * scale);
  if (j < count) use(j, present(j, count) ? load(scores + j) * scale : all(other));
}

// Takes `count` scores of a row into its largest so far, and rescales its sums when that grows.
HYDRASCOPE_INLINE void find_largest(const float* scores, const std::int64_t count, const float scale,
                                    float& largest, float& total, float* sums,
                                    const std::int64_t value_width) {
  const float before = largest;
  Lanes top = all(before);
  scaled_scores(
      scores, count, scale, before, [&](std::int64_t, const Lanes& score) __attribute__((always_inline)) {
        top = larger(score, top);
      });
  largest = largest_of(top);
  if (!(before < largest) || total == 0) return;
  const float shrunk = exponential(all(before - largest))[0];
  total *= shrunk;
  for (std::int64_t f = 0; f < value_width; f += lane_count) store(sums + f, load(sums + f) * shrunk);
}

// Replaces `count` scores of a row by the factors e^(scale · score − largest), up to a whole register, and
// returns their sum.
HYDRASCOPE_INLINE float make_weights(float* scores, const std::int64_t count, const float scale,
                                     const float largest) {
  auto* const weights = reinterpret_cast<Factor*>(scores); // they take no more place than what has been read
  Lanes total{};
  scaled_scores(
      scores, count, scale,
      -__builtin_inff(), [&](const std::int64_t j, const Lanes& score) __attribute__((always_inline)) {
        const Lanes exponent = score - largest;
        const Lanes power = depth_of<Factor> == 1 ? exponential(exponent) : rough_exponential(exponent);
        const Lanes weight = j + lane_count <= count || present(j, count) ? power : Lanes{};
        store_left(weights, j, weight);
        total += weight;
      });
  return sum_of(total);
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
  [[maybe_unused]] const TileRegisters tiles;
  const std::int64_t width = padded_to_lanes(q.head_width), value_width = padded_to_lanes(v.head_width);
  const std::int64_t words = width / depth_of<Factor>; // of a row of factors
  const SoftmaxSpace space(width, value_width, buffers);
  auto* const query_factors = reinterpret_cast<Factor*>(space.queries);
  const std::int64_t count = gather_factors<Side::left>(q, mask, queries, query_factors, space.rows),
                     all_rows = whole_rows(count);
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
    auto* const key_factors = reinterpret_cast<Factor*>(space.keys);
    auto* const value_factors = reinterpret_cast<Factor*>(space.values);
    const std::int64_t keys = gather_factors<Side::left>(k, mask, {first, last}, key_factors, space.rows),
                       stride = padded_to_lanes(keys);
    if (keys == 0) continue;
    gather_factors<Side::right>(v, mask, {first, last}, value_factors, space.rows);
    const std::int64_t made = whole_rows(keys); // the rows after them, up to the stride, are of no key
    clear(space.keys + made * words, (stride - made) * words);
    clear(space.values + made * value_width / depth_of<Factor>,
          (stride - made) * value_width / depth_of<Factor>);
    // A pair of bfloat16 numbers moves as one word. Words beyond a key's own move, too; nothing reads them.
    for (std::int64_t key = 0; key < stride; key += lane_count)
      for (std::int64_t f = 0; f < words; f += lane_count)
        transpose_tile(space.keys + key * words + f, words, space.columns + f * stride + key, stride);
    const auto* const column_factors = reinterpret_cast<const Factor*>(space.columns);
    for (std::int64_t row = 0; row < all_rows; row += tokens_of_block) {
      const std::int64_t rows = row + tokens_of_block < all_rows ? tokens_of_block : all_rows - row;
      if (causal && row_tokens[row + rows - 1] < first) continue;
      float* const sums = space.sums + row * value_width;
      rows_times<Start::zero>(query_factors + row * words, rows, width, column_factors, stride, space.scores);
      // Two loops: the processor overlaps different rows, but not the steps within one row.
      std::int64_t seen[tokens_of_block];
      for (std::int64_t i = 0; i < rows; ++i) {
        seen[i] = causal ? real_up_to(row_tokens[row + i], {first, last}, mask) : keys;
        if (seen[i] > 0)
          find_largest(space.scores + i * stride, seen[i], scale, space.largest[row + i],
                       space.totals[row + i], sums + i * value_width, value_width);
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        float* const scores = space.scores + i * stride;
        if (seen[i] > 0)
          space.totals[row + i] += make_weights(scores, seen[i], scale, space.largest[row + i]);
        const std::int64_t made_weights = (seen[i] + lane_count - 1) / lane_count * lane_count;
        clear(scores + made_weights / depth_of<Factor>, (stride - made_weights) / depth_of<Factor>);
      }
      make_product<Start::sums>(Left<Factor>{reinterpret_cast<const Factor*>(space.scores), stride, 1},
                                static_cast<const Factor*>(value_factors), rows, stride / depth_of<Factor>,
                                value_width, sums);
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
