// Pictures as 8-bit RGB: reading, writing, cropping, resizing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb; // 3 · width · height, row-major, top row first
};

// Reads PNG, JPEG, BMP, GIF (first frame), PSD, TGA by stb_image, and binary PNM; grey becomes RGB, alpha is
// dropped (as PIL's convert("RGB") does), and a JPEG's EXIF orientation is applied (as transformers'
// load_image does). Throws Error (missing, no regular file, a file above 1 GiB, more pixels than
// `most_pixels`), ForeignFile, BrokenFile that name `subject`.
Image load_image(const std::filesystem::path& file);
Image decode_image(std::span<const std::uint8_t> bytes, const std::string& subject,
                   std::int64_t most_pixels = std::int64_t{1} << 28);
Image decode_image(const std::string& bytes, const std::string& subject);

// Throws Error for a picture of more than `most` pixels.
void check_pixels(std::int64_t width, std::int64_t height, std::int64_t most, const std::string& subject);

// The endings of the formats that load_image() reads: ".png", ".jpg", …
std::span<const std::string_view> picture_endings();
// Whether the file's name has one of them, in any case.
bool has_picture_ending(const std::filesystem::path& file);

// The bytes of a PNG file.
std::string encode_png(const Image& image);

// Turns and mirrors a picture of this EXIF orientation upright; returned as it is for any other number than
// 2…8.
Image upright(const Image& image, int orientation);

// width × height pixels from (left, top) on; black where the rectangle reaches beyond the picture.
Image crop(const Image& image, int left, int top, int width, int height);

// The numbers are PIL's `resample` codes.
enum class Filter { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };
// Antialiased resize to width × height (both positive), equal to Pillow's to the last bit, since Hugging
// Face's image processors are defined by it; `nearest` picks pixels.
Image resample(const Image& image, int width, int height, Filter filter);

} // namespace hydrascope
