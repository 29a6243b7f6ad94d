// Matrix products of factors in memory, for the processor that HYDRASCOPE_CPU names.
#include "engine/attention/simd/cpu/product.h"
#include "engine/attention/simd/products.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

void left(const float* a, const std::int64_t rows, const std::int64_t depth, void* factors) {
  make_left(a, rows, depth, static_cast<Factor*>(factors));
}

void right(const float* b, const std::int64_t depth, const std::int64_t width, void* factors) {
  make_right(b, depth, width, static_cast<Factor*>(factors));
}

void rows_product(const void* a, const std::int64_t rows, const std::int64_t depth, const void* b,
                  const std::int64_t width, float* c) {
  [[maybe_unused]] const TileRegisters tiles;
  rows_times<Start::zero>(static_cast<const Factor*>(a), rows, depth, static_cast<const Factor*>(b), width,
                          c);
}

void columns_product(const void* a, const std::int64_t depth, const std::int64_t columns, const void* b,
                     const std::int64_t width, float* c) {
  [[maybe_unused]] const TileRegisters tiles;
  add_columns_times(static_cast<const Factor*>(a), depth, columns, static_cast<const Factor*>(b), width, c);
}

constexpr ProductLoops loops{left, right, rows_product, columns_product};

} // namespace

const ProductLoops& product_loops() { return loops; }

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
