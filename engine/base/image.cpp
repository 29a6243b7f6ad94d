#include "engine/base/image.h"

#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "engine/base/error.h"
#include "engine/base/exif.h"
#include "engine/base/paths.h"

#if defined(__GNUC__)
  #pragma GCC diagnostic push
  #pragma GCC diagnostic ignored "-Wconversion"
  #pragma GCC diagnostic ignored "-Wsign-conversion"
  #pragma GCC diagnostic ignored "-Wshadow"
  #pragma GCC diagnostic ignored "-Wextra"
  #pragma GCC diagnostic ignored "-Wunused-function"
#endif
#define STBI_NO_HDR
#define STBI_NO_PIC
#define STBI_NO_STDIO
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#if defined(__GNUC__)
  #pragma GCC diagnostic pop
#endif

namespace hydrascope {
namespace {

// A picture beyond this (1 GiB of RGB) is refused before it is decoded.
constexpr std::int64_t largest_pixels = std::int64_t{1} << 28;
const char* const formats = "use a PNG, JPEG, BMP, GIF, PSD, TGA or PNM picture";

struct FreeImage {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};

} // namespace

Image decode_image(std::span<const std::uint8_t> bytes, const std::string& subject) {
  if (bytes.empty()) throw ForeignFile(subject, "is empty", formats);
  if (bytes.size() > std::size_t{std::numeric_limits<int>::max()})
    throw Error(subject, "is larger than 2 GB", "use a smaller picture");
  const int size = static_cast<int>(bytes.size());
  int width = 0;
  int height = 0;
  int channels = 0;
  if (stbi_info_from_memory(bytes.data(), size, &width, &height, &channels) == 0)
    throw ForeignFile(subject, "is not a picture that can be read", formats);
  if (std::int64_t{width} * height > largest_pixels)
    throw Error(subject, "is " + std::to_string(width) + " by " + std::to_string(height) + " pixels",
                "use a picture of at most 268 megapixels");
  const std::unique_ptr<stbi_uc, FreeImage> pixels(
      stbi_load_from_memory(bytes.data(), size, &width, &height, &channels, 3));
  if (!pixels) {
    const char* reason = stbi_failure_reason();
    throw BrokenFile(subject,
                     std::string("cannot be decoded (") + (reason != nullptr ? reason : "unknown") + ")",
                     "the file may be truncated: fetch it again");
  }
  Image image;
  image.width = width;
  image.height = height;
  image.rgb.assign(pixels.get(), pixels.get() + std::size_t{3} * static_cast<std::size_t>(width) *
                                                    static_cast<std::size_t>(height));
  return upright(image, exif_orientation(bytes));
}

Image load_image(const std::filesystem::path& file) {
  const std::string bytes = read_text_file(file);
  return decode_image({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, file.string());
}

} // namespace hydrascope
