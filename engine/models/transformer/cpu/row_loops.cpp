// The loops over the weights of a product, for the processor that HYDRASCOPE_CPU names. Nothing here calls a
// function that is not inlined (softmax_loops.cpp says why).
#include "engine/attention/simd/products.h"
#include "engine/models/transformer/cpu/row.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

HYDRASCOPE_INLINE float number(const float x) { return x; }
HYDRASCOPE_INLINE float number(const std::uint16_t x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Several rows at once: their reads from memory overlap, and x is loaded once for them. Prefetches the rows
// after them: measured 1.5 times as fast in bfloat16.
template <std::int64_t rows, typename Number>
HYDRASCOPE_INLINE void multiply_rows(const float* x, const Number* weights, const std::int64_t in,
                                     float* out) {
  constexpr std::int64_t step = 2 * register_floats;
  Register sum[rows][2] = {};
  std::int64_t i = 0;
  for (; i + step <= in; i += step) {
    const Register left = load_register(x + i), right = load_register(x + i + register_floats);
    HYDRASCOPE_UNROLL
    for (std::int64_t r = 0; r < rows; ++r) {
      prefetch<step>(weights + (r + rows) * in + i);
      sum[r][0] += left * load_register(weights + r * in + i);
      sum[r][1] += right * load_register(weights + r * in + i + register_floats);
    }
  }
  HYDRASCOPE_UNROLL
  for (std::int64_t r = 0; r < rows; ++r) {
    float total = sum_of(sum[r][0] + sum[r][1]);
    for (std::int64_t j = i; j < in; ++j) total += x[j] * number(weights[r * in + j]);
    out[r] = total;
  }
}

template <typename Number>
HYDRASCOPE_INLINE void multiply(const float* x, const Number* weights, const std::int64_t in,
                                const std::int64_t rows, float* out) {
  constexpr std::int64_t at_once = 4;
  std::int64_t row = 0;
  for (; row + at_once <= rows; row += at_once) multiply_rows<at_once>(x, weights + row * in, in, out + row);
  for (; row < rows; ++row) multiply_rows<1>(x, weights + row * in, in, out + row);
}

void product(const float* x, const void* weights, const Element element, const std::int64_t in,
             const std::int64_t rows, float* out) {
  if (element == Element::bfloat16)
    multiply(x, static_cast<const std::uint16_t*>(weights), in, rows, out);
  else
    multiply(x, static_cast<const float*>(weights), in, rows, out);
}

constexpr RowLoops loops{product};

} // namespace

const RowLoops& row_loops() { return loops; }

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
