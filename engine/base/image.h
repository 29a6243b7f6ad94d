// Pictures as decoded from files: 8-bit RGB, row-major, top row first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace hydrascope {

struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb; // 3 * width * height
};

// Reads PNG, JPEG, BMP, GIF (first frame), PSD, TGA, PNM by stb_image; grey becomes RGB, alpha is dropped
// (as PIL's convert("RGB") does), and a JPEG's EXIF orientation is applied (as transformers' load_image
// does). Throws Error (missing, unreadable), ForeignFile, BrokenFile.
Image load_image(const std::filesystem::path& file);
Image decode_image(std::span<const std::uint8_t> bytes, const std::string& subject);

} // namespace hydrascope
