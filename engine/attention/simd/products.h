// Small matrix products in registers, for the processor that HYDRASCOPE_CPU names: C = A·B or C += A·B with A
// of any strides, the rows of B and C padded to whole lanes. Blocks of A and B should fit the first two
// caches.
#pragma once

#include "engine/attention/simd/lanes.h"
#include "engine/attention/simd/tiles.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// Registers of a row of C that are kept for each of the rows_at_once rows of A.
constexpr std::int64_t registers_at_once = lane_count == most_lanes ? 4 : 2;

// Numbers as the product takes them: floats, or pairs of bfloat16 numbers, neighbours along the depth. A left
// factor has them row by row. A right factor has rows of floats, or of pairs (k, k + 1).
template <typename Number>
constexpr std::int64_t depth_of = 1; // floats

HYDRASCOPE_INLINE Lanes factors(const float* from) { return load(from); }
HYDRASCOPE_INLINE Lanes factors(const float from) { return from - Lanes{}; }
HYDRASCOPE_INLINE void add_products(Lanes& sum, const Lanes& a, const Lanes& b) { sum += a * b; }

// Numbers f … of a row of the left factor.
HYDRASCOPE_INLINE void store_left(float* row, const std::int64_t f, const Lanes& x) { store(row + f, x); }
// Numbers f … of rows k and k + 1 of the right factor. k: even.
HYDRASCOPE_INLINE void store_right(float* rows, const std::int64_t k, const std::int64_t width,
                                   const std::int64_t f, const Lanes& first, const Lanes& second) {
  store(rows + k * width + f, first);
  store(rows + (k + 1) * width + f, second);
}

#ifdef __AVX512BF16__

// As vdpbf16ps expects them.
struct Pair {
  std::uint16_t first, second;
};
template <>
constexpr std::int64_t depth_of<Pair> = 2;
using Factor = Pair;

// Sixteen bfloat16 numbers below sixteen others, pair by pair.
HYDRASCOPE_INLINE __m512i paired(const __m512i both) {
  alignas(64) static constexpr std::uint16_t order[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                          21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                          11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(order), both);
}
HYDRASCOPE_INLINE __m512i pairs_of(const Lanes& first, const Lanes& second) {
  // The instruction places its second operand's sixteen numbers below its first's.
  return paired(__builtin_bit_cast(
      __m512i, _mm512_cvtne2ps_pbh(__builtin_bit_cast(__m512, second), __builtin_bit_cast(__m512, first))));
}
HYDRASCOPE_INLINE __m512i pairs_of(const std::uint16_t* first, const std::uint16_t* second) {
  const auto half = [](const std::uint16_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  };
  return paired(_mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(half(first)), half(second), 1));
}

HYDRASCOPE_INLINE void store_left(Pair* row, const std::int64_t f, const Lanes& x) {
  store_bfloat16(reinterpret_cast<std::uint16_t*>(row + f / 2), x);
}
HYDRASCOPE_INLINE void store_right(Pair* rows, const std::int64_t k, const std::int64_t width,
                                   const std::int64_t f, const Lanes& first, const Lanes& second) {
  _mm512_storeu_si512(rows + k / 2 * width + f, pairs_of(first, second));
}

HYDRASCOPE_INLINE __m512bh factors(const Pair* from) {
  return __builtin_bit_cast(__m512bh, _mm512_loadu_si512(from));
}
HYDRASCOPE_INLINE __m512bh factors(const Pair from) {
  return __builtin_bit_cast(__m512bh, _mm512_set1_epi32(__builtin_bit_cast(int, from)));
}
HYDRASCOPE_INLINE void add_products(Lanes& sum, const __m512bh& a, const __m512bh& b) {
  sum = __builtin_bit_cast(Lanes, _mm512_dpbf16_ps(__builtin_bit_cast(__m512, sum), a, b));
}

#else
using Factor = float;
#endif

// Factors from rows of floats (rows, depth), or (depth, width) with an even depth. In place where to is from.
template <typename Number>
HYDRASCOPE_INLINE void make_left(const float* from, const std::int64_t rows, const std::int64_t depth,
                                 Number* to) {
  for (std::int64_t i = 0; i < rows * depth; i += lane_count) store_left(to, i, load(from + i));
}
template <typename Number>
HYDRASCOPE_INLINE void make_right(const float* from, const std::int64_t depth, const std::int64_t width,
                                  Number* to) {
  for (std::int64_t k = 0; k < depth; k += 2)
    for (std::int64_t f = 0; f < width; f += lane_count)
      store_right(to, k, width, f, load(from + k * width + f), load(from + (k + 1) * width + f));
}

// The same, made in `spare`; rows of floats are factors as they are.
HYDRASCOPE_INLINE const float* left_factors(const float* from, std::int64_t, std::int64_t, float*) {
  return from;
}
HYDRASCOPE_INLINE const float* right_factors(const float* from, std::int64_t, std::int64_t, float*) {
  return from;
}
#ifdef __AVX512BF16__
HYDRASCOPE_INLINE const Pair* left_factors(const float* from, const std::int64_t rows,
                                           const std::int64_t depth, Pair* spare) {
  make_left(from, rows, depth, spare);
  return spare;
}
HYDRASCOPE_INLINE const Pair* right_factors(const float* from, const std::int64_t depth,
                                            const std::int64_t width, Pair* spare) {
  make_right(from, depth, width, spare);
  return spare;
}
#endif

// The first halves of two registers, number by number, and the second.
HYDRASCOPE_INLINE Lanes alternate_first(const Lanes& a, const Lanes& b) {
#if defined __AVX512F__
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif defined __AVX__
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
HYDRASCOPE_INLINE Lanes alternate_second(const Lanes& a, const Lanes& b) {
#if defined __AVX512F__
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif defined __AVX__
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

// lane_count rows of as many floats, `from` apart by from_stride, side by side: to[f·to_stride + row].
HYDRASCOPE_INLINE void transpose_tile(const float* from, const std::int64_t from_stride, float* to,
                                      const std::int64_t to_stride) {
  Lanes rows[lane_count], other[lane_count];
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < lane_count; ++i) rows[i] = load(from + i * from_stride);
  // Each perfect shuffle of all numbers moves a bit of the column's number to the row's.
  HYDRASCOPE_UNROLL
  for (std::int64_t bit = 1; bit < lane_count; bit *= 2) {
    HYDRASCOPE_UNROLL
    for (std::int64_t i = 0; i < lane_count / 2; ++i) {
      other[2 * i] = alternate_first(rows[i], rows[i + lane_count / 2]);
      other[2 * i + 1] = alternate_second(rows[i], rows[i + lane_count / 2]);
    }
    HYDRASCOPE_UNROLL
    for (std::int64_t i = 0; i < lane_count; ++i) rows[i] = other[i];
  }
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < lane_count; ++i) store(to + i * to_stride, rows[i]);
}

// Entry (i,k) of A lies at data[i·row + k·column]; of pairs k counts these.
template <typename Entry>
struct Left {
  const Entry* data;
  std::int64_t row, column;
};

// What the product is added to: nothing, C itself, or a row that is the same for all rows of C.
enum class Start { zero, sums, row };

template <Start start, std::int64_t registers, typename Entry>
HYDRASCOPE_INLINE void make_tile(const Left<Entry>& a, const Entry* b, const std::int64_t depth,
                                 const std::int64_t stride, float* c, const float* start_row) {
  Lanes sum[rows_at_once][registers];
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < rows_at_once; ++i) HYDRASCOPE_UNROLL
  for (std::int64_t l = 0; l < registers; ++l)
    sum[i][l] = start == Start::zero
                    ? Lanes{}
                    : load((start == Start::sums ? c + i * stride : start_row) + l * lane_count);
  for (std::int64_t k = 0; k < depth; ++k) {
    decltype(factors(b)) row[registers];
    HYDRASCOPE_UNROLL
    for (std::int64_t l = 0; l < registers; ++l) row[l] = factors(b + k * stride + l * lane_count);
    HYDRASCOPE_UNROLL
    for (std::int64_t i = 0; i < rows_at_once; ++i) {
      const auto factor = factors(a.data[i * a.row + k * a.column]);
      HYDRASCOPE_UNROLL
      for (std::int64_t l = 0; l < registers; ++l) add_products(sum[i][l], factor, row[l]);
    }
  }
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < rows_at_once; ++i) HYDRASCOPE_UNROLL
  for (std::int64_t l = 0; l < registers; ++l) store(c + i * stride + l * lane_count, sum[i][l]);
}

#ifdef __AMX_BF16__

// As make_product(), `columns` tiles of a row of them. rows and depth: sixteen at a time.
template <Start start, int columns, typename Factors>
HYDRASCOPE_INLINE void make_tile_row(const Factors& load_factors, const Pair* b, const std::int64_t depth,
                                     const std::int64_t stride, float* c, const float* start_row) {
  constexpr int left = 6, right = 7; // the tiles of factors
  for_tiles<columns>([&]<int tile>() __attribute__((always_inline)) {
    if constexpr (start == Start::zero) zero_tile<tile>();
    if constexpr (start == Start::sums) load_tile<tile>(c + tile * tile_words, stride);
    if constexpr (start == Start::row)
      load_tile<tile>(start_row + tile * tile_words, 0); // the same sixteen times
  });
  for (std::int64_t k = 0; k < depth; k += tile_words) {
    load_factors.template operator()<left>(k);
    for_tiles<columns>([&]<int tile>() __attribute__((always_inline)) {
      load_tile<right>(b + k * stride + tile * tile_words, stride);
      add_tile_product<tile, left, right>();
    });
  }
  for_tiles<columns>([&]<int tile>()
                         __attribute__((always_inline)) { store_tile<tile>(c + tile * tile_words, stride); });
}

template <Start start, typename Between>
HYDRASCOPE_INLINE void make_tiled_product(const Left<Pair>& a, const Pair* b, const std::int64_t rows,
                                          const std::int64_t depth, const std::int64_t stride, float* c,
                                          Between between, const float* start_row) {
  constexpr int columns_at_once = 4;
  for (std::int64_t i = 0; i < rows; i += tile_rows) {
    for (std::int64_t row = 0; row < tile_rows; row += rows_at_once) between();
    const auto load_factors = [&]<int tile>(const std::int64_t k) __attribute__((always_inline)) {
      const Pair* const from = a.data + i * a.row + k * a.column;
      if (a.column == 1) return load_tile<tile>(from, a.row);
      alignas(64) float turned[tile_rows * tile_words]; // a pair moves as one word
      transpose_tile(reinterpret_cast<const float*>(from), a.column, turned, tile_words);
      load_tile<tile>(turned, tile_words);
    };
    const auto make = [&]<int columns>(const std::int64_t f) __attribute__((always_inline)) {
      make_tile_row<start, columns>(load_factors, b + f, depth, stride, c + i * stride + f,
                                    start == Start::row ? start_row + f : nullptr);
    };
    std::int64_t f = 0;
    for (; f + columns_at_once * tile_words <= stride; f += columns_at_once * tile_words)
      make.template operator()<columns_at_once>(f);
    for (; f < stride; f += tile_words) make.template operator()<1>(f);
  }
}

#endif

// As make_product(), in registers.
template <Start start, typename Entry, typename Between>
HYDRASCOPE_INLINE void make_register_product(const Left<Entry>& a, const Entry* b, const std::int64_t rows,
                                             const std::int64_t depth, const std::int64_t stride, float* c,
                                             Between between, const float* start_row) {
  for (std::int64_t i = 0; i < rows; i += rows_at_once) {
    between();
    const Left<Entry> own{a.data + i * a.row, a.row, a.column};
    float* const to = c + i * stride;
    const auto from_row = [&](const std::int64_t f) { return start == Start::row ? start_row + f : nullptr; };
    std::int64_t f = 0;
    for (; f + registers_at_once * lane_count <= stride; f += registers_at_once * lane_count)
      make_tile<start, registers_at_once>(own, b + f, depth, stride, to + f, from_row(f));
    for (; f < stride; f += lane_count) make_tile<start, 1>(own, b + f, depth, stride, to + f, from_row(f));
  }
}

// C (rows, stride) = or += A (rows, depth) · B (depth, stride). rows: a multiple of rows_at_once; stride: of
// most_lanes. Pairs: within the life of TileRegisters.
template <Start start, typename Entry, typename Between = NoPrefetch>
HYDRASCOPE_INLINE void make_product(const Left<Entry>& a, const Entry* b, const std::int64_t rows,
                                    const std::int64_t depth, const std::int64_t stride, float* c,
                                    Between between = {}, const float* start_row = nullptr) {
#ifdef __AMX_BF16__
  if constexpr (depth_of<Entry> == 2)
    if (rows % tile_rows == 0 && depth >= tile_words) {
      const std::int64_t tiled = depth / tile_words * tile_words;
      make_tiled_product<start>(a, b, rows, tiled, stride, c, between, start_row);
      if (tiled == depth) return;
      const Left<Entry> rest{a.data + tiled * a.column, a.row, a.column};
      return make_register_product<Start::sums>(rest, b + tiled * stride, rows, depth - tiled, stride, c,
                                                NoPrefetch(), nullptr);
    }
#endif
  make_register_product<start>(a, b, rows, depth, stride, c, between, start_row);
}

// c (rows,stride) = or += a (rows,depth) · b, or row + that, whose right factor has `depth` rows. All whole.
template <Start start, typename Number, typename Between = NoPrefetch>
HYDRASCOPE_INLINE void rows_times(const Number* a, const std::int64_t rows, const std::int64_t depth,
                                  const Number* b, const std::int64_t stride, float* c, Between between = {},
                                  const float* start_row = nullptr) {
  constexpr std::int64_t step = depth_of<Number>;
  make_product<start>(Left<Number>{a, depth / step, 1}, b, rows, depth / step, stride, c, between, start_row);
}

// c (columns,stride) += aᵀ · b for right factors of `depth` rows. All whole.
template <typename Number, typename Between = NoPrefetch>
HYDRASCOPE_INLINE void add_columns_times(const Number* a, const std::int64_t depth,
                                         const std::int64_t columns, const Number* b,
                                         const std::int64_t stride, float* c, Between between = {}) {
  constexpr std::int64_t step = depth_of<Number>;
  make_product<Start::sums>(Left<Number>{a, 1, columns}, b, columns, depth / step, stride, c, between);
}

// Copies the block's real rows one after another to `to` as rows of a left or right factor, followed by rows
// of 0 up to a multiple of rows_at_once. Returns the number of real rows. spare: two padded rows.
enum class Side { left, right };

#ifdef __AVX512BF16__

HYDRASCOPE_INLINE void put_factors(Pair* left, const float* row, const std::int64_t width) {
  for (std::int64_t f = 0; f < width; f += lane_count) store_left(left, f, load(row + f));
}
HYDRASCOPE_INLINE void put_factors(Pair* left, const std::uint16_t* row, const std::int64_t width) {
  std::memcpy(left, row, static_cast<std::size_t>(width) * sizeof(std::uint16_t));
}
HYDRASCOPE_INLINE void put_factors(Pair* right, const float* first, const float* second,
                                   const std::int64_t width) {
  for (std::int64_t f = 0; f < width; f += lane_count)
    store_right(right, 0, width, f, load(first + f), load(second + f));
}
HYDRASCOPE_INLINE void put_factors(Pair* right, const std::uint16_t* first, const std::uint16_t* second,
                                   const std::int64_t width) {
  for (std::int64_t f = 0; f < width; f += lane_count)
    _mm512_storeu_si512(right + f, pairs_of(first + f, second + f));
}

// row_at(token, place): its numbers, `padded` of them, at `place` or where they lie. places: two rows, of 0.
template <Side side, typename Number, typename RowAt>
HYDRASCOPE_INLINE std::int64_t gather_rows(const unsigned char* mask, const TokenRange block,
                                           const std::int64_t padded, Number* places, Pair* to,
                                           const RowAt& row_at) {
  std::int64_t count = 0;
  const Number* before = nullptr;
  const auto put = [&](const Number* row) __attribute__((always_inline)) {
    if constexpr (side == Side::left)
      put_factors(to + count * padded / 2, row, padded);
    else if (count % 2 == 1)
      put_factors(to + count / 2 * padded, before, row, padded);
    before = row;
    ++count;
  };
  for (std::int64_t token = block.first; token < block.last; ++token)
    if (real(mask, token)) put(row_at(token, places + count % 2 * padded));
  const std::int64_t found = count, whole = whole_rows(found);
  if (found < whole) { // what follows an odd number of rows begins in the second place
    clear(reinterpret_cast<float*>(places + padded), padded * static_cast<std::int64_t>(sizeof(Number)) / 4);
    while (count < whole) put(places + padded);
  }
  return found;
}

template <Side side>
HYDRASCOPE_INLINE std::int64_t gather_factors(const Rows& rows, const unsigned char* mask,
                                              const TokenRange block, Pair* to, float* spare) {
  const std::int64_t padded = padded_to_lanes(rows.head_width);
  clear(spare, 2 * padded);
  if (rows.element == Element::bfloat16 && rows.head_width == padded)
    return gather_rows<side>(
        mask, block, padded, reinterpret_cast<std::uint16_t*>(spare),
        to, [&](const std::int64_t token, std::uint16_t*) __attribute__((always_inline)) {
          return static_cast<const std::uint16_t*>(rows.data) + token * rows.token_stride;
        });
  return gather_rows<side>(
      mask, block, padded, spare,
      to, [&](const std::int64_t token, float* place) __attribute__((always_inline)) {
        return row_of(rows, token, place);
      });
}

#endif

// A block's rows as they lie, if they are a left factor of a product there; else null.
template <typename Number>
HYDRASCOPE_INLINE const Number* rows_in_place(const Rows& rows, const unsigned char* mask,
                                              const TokenRange block) {
  constexpr Element element = depth_of<Number> == 1 ? Element::float32 : Element::bfloat16;
  const bool whole = (block.last - block.first) % rows_at_once == 0 && rows.head_width % most_lanes == 0 &&
                     rows.token_stride % depth_of<Number> == 0;
  if (mask != nullptr || rows.element != element || !whole) return nullptr;
  return static_cast<const Number*>(rows.data) + block.first * rows.token_stride / depth_of<Number>;
}

template <Side>
HYDRASCOPE_INLINE std::int64_t gather_factors(const Rows& rows, const unsigned char* mask,
                                              const TokenRange block, float* to, float*) {
  return gather(rows, mask, block, to);
}

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
