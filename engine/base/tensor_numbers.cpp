#include "engine/base/tensor_numbers.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hydrascope {
namespace {

double half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

template <typename Stored, typename Convert>
void convert_each(const std::byte* at, std::span<double> numbers, Convert convert) {
  for (double& number : numbers) {
    Stored stored;
    std::memcpy(&stored, at, sizeof stored);
    number = convert(stored);
    at += sizeof stored;
  }
}

// Whether all numbers are finite: none has an exponent of ones alone.
template <typename Bits>
bool finite_bits(std::span<const std::byte> bytes, Bits exponent) {
  bool finite = true;
  for (std::size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    finite = finite && (bits & exponent) != exponent;
  }
  return finite;
}

} // namespace

std::string shape_text(const TensorView& view) { return fmt::format("({})", fmt::join(view.shape, ",")); }

bool is_floating(ElementType type) {
  return type == ElementType::f64 || type == ElementType::f32 || type == ElementType::f16 ||
         type == ElementType::bf16;
}

void read_numbers(const TensorView& view, std::size_t index, std::span<double> numbers) {
  const std::byte* const at = view.bytes.data() + index * element_size(view.type);
  const auto plain = [](auto stored) { return static_cast<double>(stored); };
  const auto brain = [](std::uint16_t bits) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  };
  switch (view.type) {
    case ElementType::f64: return convert_each<double>(at, numbers, plain);
    case ElementType::f32: return convert_each<float>(at, numbers, plain);
    case ElementType::f16: return convert_each<std::uint16_t>(at, numbers, half);
    case ElementType::bf16: return convert_each<std::uint16_t>(at, numbers, brain);
    case ElementType::i64: return convert_each<std::int64_t>(at, numbers, plain);
    case ElementType::i32: return convert_each<std::int32_t>(at, numbers, plain);
    case ElementType::i16: return convert_each<std::int16_t>(at, numbers, plain);
    case ElementType::i8: return convert_each<std::int8_t>(at, numbers, plain);
    default: return convert_each<std::uint8_t>(at, numbers, plain);
  }
}

bool all_finite(ElementType type, std::span<const std::byte> bytes) {
  switch (type) {
    case ElementType::f64: return finite_bits<std::uint64_t>(bytes, 0x7ff0'0000'0000'0000);
    case ElementType::f32: return finite_bits<std::uint32_t>(bytes, 0x7f80'0000);
    case ElementType::f16: return finite_bits<std::uint16_t>(bytes, 0x7c00);
    default: return finite_bits<std::uint16_t>(bytes, 0x7f80);
  }
}

} // namespace hydrascope
