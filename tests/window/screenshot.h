// Pictures of the window as files.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>

#include "engine/base/image.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

// The part of `image` inside the rectangle (x, y, width, height).
inline Image cut_out(const Image& image, const std::array<int, 4>& rectangle) {
  const int x = std::clamp(rectangle[0], 0, image.width), y = std::clamp(rectangle[1], 0, image.height);
  Image part{std::clamp(rectangle[2], 0, image.width - x), std::clamp(rectangle[3], 0, image.height - y), {}};
  for (int row = 0; row < part.height; ++row) {
    const auto from = image.rgb.begin() + (static_cast<std::ptrdiff_t>(y + row) * image.width + x) * 3;
    part.rgb.insert(part.rgb.end(), from, from + static_cast<std::ptrdiff_t>(part.width) * 3);
  }
  return part;
}

// Throws Error if the file cannot be written.
inline void write_png(const std::filesystem::path& file, const Image& image) {
  write_file_atomically(file, encode_png(image));
}

} // namespace hydrascope::app
