#include "app/window/screenshot.h"

#include <algorithm>
#include <string>

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

#include "engine/plain/paths.h"

namespace hydrascope::app {

Image cut_out(const Image& image, const std::array<int, 4>& rectangle) {
  const int x = std::clamp(rectangle[0], 0, image.width), y = std::clamp(rectangle[1], 0, image.height);
  Image part{std::clamp(rectangle[2], 0, image.width - x), std::clamp(rectangle[3], 0, image.height - y), {}};
  for (int row = 0; row < part.height; ++row) {
    const auto from = image.rgb.begin() + (static_cast<std::ptrdiff_t>(y + row) * image.width + x) * 3;
    part.rgb.insert(part.rgb.end(), from, from + static_cast<std::ptrdiff_t>(part.width) * 3);
  }
  return part;
}

void write_png(const std::filesystem::path& file, const Image& image) {
  std::string bytes;
  stbi_write_png_to_func(
      [](void* context, void* data, int size) {
        static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                   static_cast<std::size_t>(size));
      },
      &bytes, image.width, image.height, 3, image.rgb.data(), image.width * 3);
  write_file_atomically(file, bytes);
}

} // namespace hydrascope::app
