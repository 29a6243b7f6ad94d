#include "engine/base/exif.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace hydrascope {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::uint32_t number(Bytes bytes, bool little_endian) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value = (value << 8) | bytes[little_endian ? bytes.size() - 1 - i : i];
  return value;
}

bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

// Tag 0x0112 of a TIFF block's first directory.
int orientation_of_tiff(Bytes tiff) {
  if (tiff.size() < 8) return 1;
  const bool little = tiff[0] == 'I';
  const std::size_t directory = number(tiff.subspan(4, 4), little);
  if (directory > tiff.size() - 2) return 1;
  const std::size_t entries = number(tiff.subspan(directory, 2), little);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + 12 * i;
    if (at + 12 > tiff.size()) return 1;
    if (number(tiff.subspan(at, 2), little) != 0x0112) continue;
    const auto value = static_cast<int>(number(tiff.subspan(at + 8, 2), little));
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

} // namespace

int exif_orientation(Bytes file) {
  if (file.size() < 4 || file[0] != 0xFF || file[1] != 0xD8) return 1;
  std::size_t at = 2;
  while (at + 4 <= file.size() && file[at] == 0xFF) {
    const std::uint8_t marker = file[at + 1];
    const std::size_t length = number(file.subspan(at + 2, 2), false);
    if (marker == 0xDA || length < 2 || at + 2 + length > file.size()) return 1; // the picture's data begin
    const Bytes segment = file.subspan(at + 4, length - 2);
    if (marker == 0xE1 && begins_with(segment, std::string_view("Exif\0\0", 6)))
      return orientation_of_tiff(segment.subspan(6));
    at += 2 + length;
  }
  return 1;
}

Image upright(const Image& image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool swapped = orientation >= 5;
  Image result;
  result.width = swapped ? image.height : image.width;
  result.height = swapped ? image.width : image.height;
  result.rgb.resize(image.rgb.size());
  for (int y = 0; y < result.height; ++y) {
    for (int x = 0; x < result.width; ++x) {
      // Where the stored picture holds the pixel shown at (x, y): EXIF 2.3, table of tag 0x0112.
      int from_x = swapped ? y : x;
      int from_y = swapped ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        from_x = image.width - 1 - from_x;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        from_y = image.height - 1 - from_y;
      const auto from = 3 * (std::ptrdiff_t{from_y} * image.width + from_x);
      const auto to = 3 * (std::ptrdiff_t{y} * result.width + x);
      std::copy_n(image.rgb.begin() + from, 3, result.rgb.begin() + to);
    }
  }
  return result;
}

} // namespace hydrascope
