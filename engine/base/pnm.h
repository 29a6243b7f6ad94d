// Binary PGM (P5) and PPM (P6) pictures. Formats: https://netpbm.sourceforge.net/doc/ppm.html
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/base/image.h"

namespace hydrascope {

bool is_pnm(std::span<const std::uint8_t> bytes);
// Numbers up to the file's largest one, at most 65,535, become 0…255. Throws Error (more pixels), BrokenFile
// (damaged, truncated) that name `subject`.
Image decode_pnm(std::span<const std::uint8_t> bytes, const std::string& subject, std::int64_t most_pixels);

} // namespace hydrascope
