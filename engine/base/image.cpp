#include "engine/base/image.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/jpeg.h"
#include "engine/base/paths.h"
#include "engine/base/picture_memory.h"
#include "engine/base/pnm.h"
#include "engine/base/text.h"

#define STBI_NO_STDIO
#include <stb_image.h>
#if defined(__GNUC__)
  #pragma GCC diagnostic push
  #pragma GCC diagnostic ignored "-Wconversion"
  #pragma GCC diagnostic ignored "-Wsign-conversion"
  #pragma GCC diagnostic ignored "-Wunused-function"
#endif
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>
#if defined(__GNUC__)
  #pragma GCC diagnostic pop
#endif

namespace hydrascope {
namespace {

const char* const formats = "use a PNG, JPEG, BMP, GIF, PSD, TGA or PNM picture";

using Bytes = std::span<const std::uint8_t>;

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

// stb_image takes a PNG beyond limits of its own for no picture at all.
void check_png_pixels(const Bytes bytes, const std::int64_t most_pixels, const std::string& subject) {
  constexpr std::size_t type_at = 12, width_at = 16, height_at = 20, end = 24; // of the first chunk
  constexpr std::int64_t longest_side = (std::int64_t{1} << 31) - 1;
  if (!begins_with(bytes, "\x89PNG") || bytes.size() < end) return;
  if (!begins_with(bytes.subspan(type_at), "IHDR")) return; // Apple's have another chunk before it
  const auto number = [&](const std::size_t at) {
    std::int64_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i) value = 256 * value + bytes[i];
    return value;
  };
  const std::int64_t width = number(width_at), height = number(height_at);
  if (std::max(width, height) <= longest_side) check_pixels(width, height, most_pixels, subject);
}

Image decode_by_stb(const Bytes bytes, const std::string& subject, const std::int64_t most_pixels) {
  const auto broken = [&](const std::string& reason) {
    return BrokenFile(subject, "unreadable or truncated " + format_name(bytes) + reason, "fetch it again");
  };
  constexpr std::size_t more = std::size_t{1} << 20;
  PictureMemory memory(2 * bytes.size() + more);
  const int size = static_cast<int>(bytes.size());
  int width = 0;
  int height = 0;
  int channels = 0;
  try {
    check_png_pixels(bytes, most_pixels, subject);
    if (stbi_info_from_memory(bytes.data(), size, &width, &height, &channels) == 0) {
      // Debian 13's stb_image reads a PNG on to its pixels before it knows the size.
      if (format_name(bytes) != "picture") throw broken("");
      throw ForeignFile(subject, "is not a picture that can be read", formats);
    }
    // A BMP whose first row is the upper one has a negative height here.
    const std::int64_t rows = std::abs(std::int64_t{height});
    if (width < 1 || rows < 1) throw broken(fmt::format(" ({} by {} pixels)", width, height));
    check_pixels(width, rows, most_pixels, subject);
    // Coefficients and four channels of 16 bits take at most 16 bytes a pixel; a JPEG's sides are rounded up.
    constexpr std::int64_t bytes_of_pixel = 16, block = 32;
    memory.set_most(static_cast<std::size_t>(bytes_of_pixel * (width + block) * (rows + block)) +
                    2 * bytes.size() + more);
    const stbi_uc* const rgb = stbi_load_from_memory(bytes.data(), size, &width, &height, &channels, 3);
    if (rgb != nullptr) return {width, height, {rgb, rgb + std::int64_t{3} * width * height}};
  } catch (const PictureFault&) {
    throw broken("");
  }
  // stb's reason is empty for a file that ends too early, and of a PNG not safe to read while others are
  // decoded.
  const char* const failure = format_name(bytes) == "PNG" ? nullptr : stbi_failure_reason();
  throw broken(failure == nullptr || *failure == '\0' ? "" : fmt::format(" ({})", failure));
}

} // namespace

void check_pixels(const std::int64_t width, const std::int64_t height, const std::int64_t most,
                  const std::string& subject) {
  if (width * height > most)
    throw Error(subject, fmt::format("is {} by {} pixels", width, height),
                fmt::format("use a picture of at most {} megapixels", most / 1'000'000));
}

Image decode_image(std::span<const std::uint8_t> bytes, const std::string& subject,
                   const std::int64_t most_pixels) {
  if (bytes.empty()) throw ForeignFile(subject, "is empty", formats);
  if (bytes.size() > std::size_t{std::numeric_limits<int>::max()})
    throw Error(subject, "is larger than 2 GB", "use a smaller picture");
  if (is_pnm(bytes)) return decode_pnm(bytes, subject, most_pixels);
  if (is_jpeg(bytes))
    if (const char* const why = why_not_decoded(bytes))
      throw BrokenFile(subject, why, "fetch it again, or save it again with another program");
  return upright(decode_by_stb(bytes, subject, most_pixels), exif_orientation(bytes));
}

Image decode_image(const std::string& bytes, const std::string& subject) {
  return decode_image(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), subject);
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
  return decode_image(read_text_file(file), file.string());
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
