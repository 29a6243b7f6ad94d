#include "engine/base/png.h"

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

namespace hydrascope {

std::string png_of(const Image& image) {
  std::string bytes;
  stbi_write_png_to_func(
      [](void* context, void* data, int size) {
        static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                   static_cast<std::size_t>(size));
      },
      &bytes, image.width, image.height, 3, image.rgb.data(), image.width * 3);
  return bytes;
}

} // namespace hydrascope
