#include "engine/figures/png_metadata.h"

#include <cmath>
#include <cstdint>
#include <string_view>

namespace hydrascope {
namespace {

// CRC-32 of ISO 3309, as the PNG specification (annex D) asks for it.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
    }
  }
  return ~crc;
}

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16 & 0xff),
          static_cast<char>(value >> 8 & 0xff), static_cast<char>(value & 0xff)};
}

std::string chunk(std::string_view type, const std::string& data) {
  const std::string body = std::string(type) + data;
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(checksum(body));
}

} // namespace

std::string with_png_metadata(const std::string& png, double dpi, const std::string& keyword,
                              const std::string& text) {
  constexpr std::size_t header_end = 8 + 12 + 13; // signature, IHDR's frame, IHDR's data
  const auto per_metre = static_cast<std::uint32_t>(std::lround(dpi / 0.0254));
  const std::string resolution = big_endian(per_metre) + big_endian(per_metre) + '\x01';
  // keyword, 0, not compressed (0, 0), no language (0), no translated keyword (0)
  const std::string international = keyword + std::string(5, '\0') + text;
  return png.substr(0, header_end) + chunk("pHYs", resolution) + chunk("iTXt", international) +
         png.substr(header_end);
}

} // namespace hydrascope
