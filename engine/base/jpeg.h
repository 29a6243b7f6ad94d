// What is read off a JPEG's segments before its pixels are decoded.
#pragma once

#include <cstdint>
#include <span>

namespace hydrascope {

// The orientation (1…8) in a JPEG's EXIF block; 1 (upright) where there is none or it cannot be read.
int exif_orientation(std::span<const std::uint8_t> jpeg);

// Whether they begin as a JPEG does, which may have filling before its first marker.
bool is_jpeg(std::span<const std::uint8_t> bytes);
// Why a JPEG is not decoded, as "a Huffman table of the JPEG has …"; null if it may be. Each Huffman table
// (DHT) has at most 256 codes, as ITU-T T.81, B.2.4.2 bounds them: every place that stb_image could read as
// such a table is checked. There are at most 4 scans, one for each component, or 64 of a progressive JPEG:
// two hundred bytes can make stb_image go through all of a picture's coefficients again.
const char* why_not_decoded(std::span<const std::uint8_t> jpeg);

} // namespace hydrascope
