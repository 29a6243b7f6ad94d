#include "engine/base/image.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"

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
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>
#if defined(__GNUC__)
  #pragma GCC diagnostic pop
#endif

namespace hydrascope {
namespace {

// Larger pictures (1 GiB of RGB) are rejected before decoding.
constexpr std::int64_t largest_pixels = std::int64_t{1} << 28;
constexpr std::uintmax_t most_picture_bytes = std::uintmax_t{1} << 30;
const char* const formats = "use a PNG, JPEG, BMP, GIF, PSD, TGA or PNM picture";

struct FreeImage {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};

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

std::string format_name(Bytes bytes) {
  if (begins_with(bytes, "\x89PNG")) return "PNG";
  if (begins_with(bytes, "\xff\xd8")) return "JPEG";
  if (begins_with(bytes, "GIF8")) return "GIF";
  return "picture";
}

// The orientation (tag 0x0112) in the first directory of a TIFF block.
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
    // stb's reason is empty for a file that ends too early.
    const char* failure = stbi_failure_reason();
    const std::string reason =
        failure == nullptr || *failure == '\0' ? "" : std::string(" (") + failure + ")";
    throw BrokenFile(subject, "unreadable or truncated " + format_name(bytes) + reason, "fetch it again");
  }
  Image image;
  image.width = width;
  image.height = height;
  image.rgb.assign(pixels.get(), pixels.get() + std::size_t{3} * static_cast<std::size_t>(width) *
                                                    static_cast<std::size_t>(height));
  return upright(image, exif_orientation(bytes));
}

std::span<const std::string_view> picture_endings() {
  static constexpr std::array<std::string_view, 10> endings = {".png", ".jpg", ".jpeg", ".bmp", ".gif",
                                                               ".psd", ".tga", ".ppm",  ".pgm", ".pnm"};
  return endings;
}

bool has_picture_ending(const std::filesystem::path& file) {
  return std::ranges::count(picture_endings(), lower_case(file.extension().string())) > 0;
}

Image load_image(const std::filesystem::path& file) {
  // Reading a device or a pipe may never end.
  std::error_code missing;
  const std::filesystem::file_status status = std::filesystem::status(file, missing);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_directory(status))
    throw Error(file.string(), "is not a regular file", "name a picture");
  if (const std::uintmax_t size = std::filesystem::file_size(file, missing);
      !missing && size > most_picture_bytes)
    throw Error(
        file.string(),
        fmt::format("has {}, and pictures of at most {} are read", bytes_text(static_cast<double>(size)),
                    bytes_text(static_cast<double>(most_picture_bytes))),
        "make it smaller");
  const std::string bytes = read_text_file(file);
  return decode_image({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, file.string());
}

std::string encode_png(const Image& image) {
  std::string bytes;
  stbi_write_png_to_func(
      [](void* context, void* data, int size) {
        static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                   static_cast<std::size_t>(size));
      },
      &bytes, image.width, image.height, 3, image.rgb.data(), image.width * 3);
  return bytes;
}

int exif_orientation(Bytes file) {
  if (file.size() < 4 || file[0] != 0xFF || file[1] != 0xD8) return 1;
  std::size_t at = 2;
  while (at + 4 <= file.size() && file[at] == 0xFF) {
    const std::uint8_t marker = file[at + 1];
    const std::size_t length = number(file.subspan(at + 2, 2), false);
    if (marker == 0xDA || length < 2 || at + 2 + length > file.size()) return 1; // the image data start
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
      // The stored position of the pixel shown at (x, y): EXIF 2.3, table of tag 0x0112.
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

Image crop(const Image& image, const int left, const int top, const int width, const int height) {
  Image result{width, height, {}};
  result.rgb.assign(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 0);
  const int first = std::max(0, -left);
  const int last = std::min(width, image.width - left);
  for (int y = std::max(0, -top); y < std::min(height, image.height - top) && first < last; ++y) {
    const auto from = image.rgb.begin() + 3 * (std::ptrdiff_t{y + top} * image.width + left + first);
    std::copy_n(from, 3 * (last - first), result.rgb.begin() + 3 * (std::ptrdiff_t{y} * width + first));
  }
  return result;
}

} // namespace hydrascope
