// Decoding pictures and resizing them as Pillow does.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/jpeg.h"
#include "engine/base/paths.h"
#include "engine/base/picture_memory.h"
#include "engine/base/safetensors.h"
#include "tests/support/checkout.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
const fs::path images = test::source_folder() / "tests" / "golden" / "images";

std::vector<std::uint8_t> bytes_of(const TensorView& view) {
  std::vector<std::uint8_t> bytes;
  for (const std::byte b : view.bytes) bytes.push_back(static_cast<std::uint8_t>(b));
  return bytes;
}

TEST(Decoding, GreyPaletteAndAlphaBecomeRgb) {
  for (const char* name : {"gray.png", "palette.png", "rgba.png", "gradient.png"}) {
    const Image image = load_image(images / "pictures" / name);
    EXPECT_EQ(image.rgb.size(), 3U * static_cast<unsigned>(image.width) * static_cast<unsigned>(image.height))
        << name;
  }
  const Image grey = load_image(images / "pictures" / "gray.png");
  EXPECT_EQ(grey.width, 37);
  EXPECT_EQ(grey.height, 50);
  for (std::size_t i = 0; i < grey.rgb.size(); i += 3) ASSERT_EQ(grey.rgb[i], grey.rgb[i + 2]);
}

// libjpeg-turbo and stb round the inverse transform and the colours differently.
TEST(Decoding, JpegIsUprightAndCloseToLibjpeg) {
  const SafetensorsFile decoded = SafetensorsFile::open(images / "decoded.safetensors");
  for (const char* name : {"rotated", "tall"}) {
    const Image image = load_image(images / "pictures" / (std::string(name) + ".jpg"));
    const TensorView& expected = decoded.tensors().at(name);
    ASSERT_EQ(expected.shape, (std::vector<std::int64_t>{image.height, image.width, 3})) << name;
    const auto bytes = bytes_of(expected);
    double sum = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) sum += std::abs(int{bytes[i]} - int{image.rgb[i]});
    EXPECT_LT(sum / static_cast<double>(bytes.size()), 2.0) << name;
  }
}

// Every sample is 40,000 of 65,535, as Pillow reads it: 155.6 of 255.
TEST(Decoding, SixteenBitsBecomeEight) {
  const Image image = load_image(test::source_folder() / "tests/fuzz/seeds/image/png-16");
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.rgb, std::vector<std::uint8_t>(27, 156));
}

// The colours that Pillow 13 gives, by libjpeg-turbo. A JPEG of Adobe's holds its inks inverted.
TEST(Decoding, InksBecomeRgb) {
  const Image image = load_image(test::source_folder() / "tests/fuzz/seeds/image/jpeg-cmyk");
  const std::vector<int> expected{1,   1,   6,   9,   6,   27,  23,  14,  74,  37,  22,  86,  46,  27,  125,
                                  63,  33,  147, 71,  38,  194, 85,  46,  200, 99,  54,  245, 108, 59,  22,
                                  119, 74,  54,  128, 79,  89,  142, 87,  116, 155, 95,  148, 165, 100, 195,
                                  184, 101, 209, 193, 106, 242, 206, 114, 19,  220, 122, 32,  229, 127, 77};
  ASSERT_EQ(image.rgb.size(), expected.size());
  EXPECT_EQ(image.width, 5);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(int{image.rgb[i]}, expected[i], 2) << i;
}

TEST(Decoding, ErrorsNameFileAndReason) {
  EXPECT_THROW(load_image(images / "absent.png"), Error);
  EXPECT_THROW(load_image(images / "pictures"), Error);
  EXPECT_THROW(load_image(images / "backends.json"), ForeignFile);
  const std::string whole = read_text_file(images / "pictures" / "gradient.png");
  const auto decode = [&](std::size_t size) {
    return decode_image({reinterpret_cast<const std::uint8_t*>(whole.data()), size}, "part.png");
  };
  EXPECT_NO_THROW(decode(whole.size()));
  EXPECT_THROW(decode(0), ForeignFile);
  try {
    decode(whole.size() / 2);
    ADD_FAILURE() << "half a picture was accepted";
  } catch (const BrokenFile& error) {
    EXPECT_NE(std::string(error.what()).find("part.png"), std::string::npos);
  }
  for (std::size_t size = 0; size < whole.size(); size += 97) EXPECT_THROW(decode(size), Error) << size;
}

TEST(Decoding, ReadsNoPipesDevicesOrHugeFiles) {
  const test::ScratchFolder folder;
  const fs::path pipe = folder / "pipe.png", huge = folder / "huge.png";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  folder.write("huge.png", "");
  std::filesystem::resize_file(huge, (std::uintmax_t{1} << 30) + 1); // sparse
  for (const auto& [file, reason] :
       {std::pair{pipe, "is not a regular file"}, std::pair{fs::path("/dev/zero"), "is not a regular file"},
        std::pair{huge, "has 1073741825 bytes, and at most 1073741824 are read"}}) {
    try {
      load_image(file);
      ADD_FAILURE() << file << " was read";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(file.string() + ": ")) << message;
      EXPECT_NE(message.find(reason), std::string::npos) << message;
    }
  }
}

TEST(Exif, EveryOrientationIsTurnedUpright) {
  // A 2×3 picture whose pixels say where they are: value = 10·row + column.
  Image shown{2, 3, {}};
  for (std::uint8_t row = 0; row < 3; ++row)
    for (std::uint8_t column = 0; column < 2; ++column)
      for (int c = 0; c < 3; ++c) shown.rgb.push_back(static_cast<std::uint8_t>(10 * row + column));
  // upright() of 6 (clockwise) undone by 8 (counter-clockwise), and the mirrorings by themselves.
  for (const int orientation : {2, 3, 4, 5, 7}) {
    const Image back = upright(upright(shown, orientation), orientation);
    EXPECT_EQ(back.rgb, shown.rgb) << orientation;
  }
  EXPECT_EQ(upright(upright(shown, 6), 8).rgb, shown.rgb);
  const Image turned = upright(shown, 6); // the lower left corner becomes the upper left
  EXPECT_EQ(turned.width, 3);
  EXPECT_EQ(turned.rgb[0], 20);
  EXPECT_EQ(exif_orientation({}), 1);
}

TEST(Exif, CutOffBlocksAreHarmless) {
  const std::string file = read_text_file(images / "pictures" / "rotated.jpg");
  const std::vector<std::uint8_t> bytes(file.begin(), file.end());
  EXPECT_EQ(exif_orientation(bytes), 6);
  for (std::size_t size = 0; size < std::min<std::size_t>(bytes.size(), 200); ++size) {
    // A copy of exactly this size, so that the sanitizer sees any byte read beyond it.
    const std::vector<std::uint8_t> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const int orientation = exif_orientation(part);
    EXPECT_TRUE(orientation == 1 || orientation == 6);
  }
}

TEST(Jpeg, TablesOfMoreCodesThanThereAreAreRefused) {
  const std::filesystem::path seed = test::source_folder() / "tests/fuzz/seeds/image/jpeg-huffman-overflow";
  EXPECT_THROW(load_image(seed), BrokenFile);
  const std::string file = read_text_file(images / "pictures" / "rotated.jpg");
  std::vector<std::uint8_t> bytes(file.begin(), file.end());
  EXPECT_EQ(why_not_decoded(bytes), nullptr);
  const std::vector<std::uint8_t> table{0xff, 0xc4, 0, 3, 0, 200, 57}; // cut off after two of its counts
  std::vector<std::uint8_t> behind = bytes;
  behind.insert(behind.end(), table.begin(), table.end());
  EXPECT_EQ(why_not_decoded(behind), nullptr); // a film behind the picture, for example
  bytes.resize(bytes.size() - 2);              // before the end of the image, after its scan
  bytes.insert(bytes.end(), table.begin(), table.end());
  EXPECT_NE(why_not_decoded(bytes), nullptr);
  bytes.back() = 56;
  EXPECT_EQ(why_not_decoded(bytes), nullptr);
  const std::vector<std::uint8_t> sound{0xff, 0xfb, 0x90, 0xff, 0xc4, 0, 3, 0, 255, 255};
  EXPECT_THROW(decode_image(sound, "x.mp3"), ForeignFile);
}

// Each may go through the whole picture again: a file of 20 KB took ten seconds.
TEST(Jpeg, MoreScansThanAPictureHasAreRefused) {
  constexpr std::uint8_t sequential = 0xc0, progressive = 0xc2;
  const auto is_refused = [](const std::uint8_t frame, const int scans) {
    std::vector<std::uint8_t> bytes{0xff, 0xd8, 0xff, frame, 0, 2};
    const std::vector<std::uint8_t> scan{0xff, 0xda, 0,    3,   0,
                                         0xff, 0,    0xff, 0xd0}; // coded 0xff, and a restart
    for (int i = 0; i < scans; ++i) bytes.insert(bytes.end(), scan.begin(), scan.end());
    const char* const why = why_not_decoded(bytes);
    EXPECT_TRUE(why == nullptr || std::string_view(why) == "the JPEG has too many scans");
    return why != nullptr;
  };
  EXPECT_FALSE(is_refused(sequential, 4));
  EXPECT_TRUE(is_refused(sequential, 5));
  EXPECT_FALSE(is_refused(progressive, 64));
  EXPECT_TRUE(is_refused(progressive, 65));
  std::string file = read_text_file(images / "pictures" / "rotated.jpg");
  const std::string scan = file.substr(file.rfind("\xff\xda"));
  for (int i = 0; i < 4; ++i) file.insert(file.size() - 2, scan, 0, scan.size() - 2); // before the end
  EXPECT_THROW(decode_image(file, "x.jpg"), BrokenFile);
}

// Inputs that tools/fuzz found, and their neighbours.
TEST(Image, EachBadInputIsReadOrRefused) {
  int refused = 0, read = 0;
  for (const auto& seed :
       std::filesystem::directory_iterator(test::source_folder() / "tests/fuzz/seeds/image"))
    try {
      EXPECT_GT(load_image(seed.path()).width, 0) << seed.path();
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  EXPECT_GE(refused, 4);
  EXPECT_GE(read, 12);
}

TEST(Image, AChunkThatAnnouncesAGigabyteTakesNoMemory) {
  EXPECT_THROW(load_image(test::source_folder() / "tests/fuzz/seeds/image/png-chunk-of-1-gib"), BrokenFile);
  PictureMemory memory(1000);
  EXPECT_EQ(PictureMemory::allocate(1001), nullptr);
  void* const taken = PictureMemory::allocate(1000);
  EXPECT_EQ(PictureMemory::reallocate(taken, 1001), nullptr); // `taken` is freed with the memory
  memory.set_most(1001);
  PictureMemory::release(PictureMemory::allocate(1001));
}

// What lies where a decoder's own variables are going to lie.
[[gnu::noinline]] void soil_the_stack() {
  volatile std::uint8_t soil[1 << 16];
  for (volatile std::uint8_t& byte : soil) byte = 0x5a;
}

TEST(Image, PixelsBeyondThePaletteAreBlack) {
  for (const char* const name : {"png-beyond-palette", "bmp-beyond-palette"}) {
    const std::string file = read_text_file(test::source_folder() / "tests/fuzz/seeds/image" / name);
    soil_the_stack();
    const Image image = decode_image({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, name);
    EXPECT_EQ(image.rgb, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0})) << name;
  }
}

TEST(Image, AnEmptyPictureIsRefused) {
  using namespace std::string_literals;
  const std::string gif = "GIF89a\0\0\1\0\0\0\0,\0\0\0\0\0\0\1\0\0\2\0;"s;
  EXPECT_THROW(decode_image({reinterpret_cast<const std::uint8_t*>(gif.data()), gif.size()}, "x.gif"), Error);
}

// A PNG (8 bits, RGB) that ends after its header.
std::string header_of_png(const std::uint32_t width, const std::uint32_t height, const char colours = 2) {
  using namespace std::string_literals;
  const auto big_endian = [](const std::uint32_t number) {
    std::string bytes;
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xFFU);
    return bytes;
  };
  const std::string header = "IHDR" + big_endian(width) + big_endian(height) + "\x08"s + colours + "\0\0\0"s;
  std::uint32_t crc = ~0U; // the format's check sum
  for (const char byte : header) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
  }
  return "\x89PNG\r\n\x1a\n\0\0\0\x0d"s + header + big_endian(~crc);
}

std::string header_of_gif(const std::uint32_t width, const std::uint32_t height) {
  using namespace std::string_literals;
  std::string bytes = "GIF89a";
  for (const std::uint32_t number : {width, width >> 8, height, height >> 8})
    bytes += static_cast<char>(number & 0xFFU);
  return bytes + "\0\0\0;"s;
}

TEST(Image, AHeaderThatAnnouncesTooManyPixelsIsRefused) {
  constexpr std::uint32_t side = 16384; // the limit is 2²⁸ pixels
  constexpr char with_alpha = 6;        // stb_image takes such a large one for no picture
  for (const std::string& file : {header_of_png(side + 1, side), header_of_png(side + 1, side, with_alpha),
                                  header_of_gif(side + 1, side)}) {
    try {
      decode_image(file, "large");
      ADD_FAILURE() << "was read";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "large: is 16385 by 16384 pixels; use a picture of at most 268 megapixels");
    }
  }
  EXPECT_THROW(decode_image(header_of_png(side, side), "cut off"), BrokenFile);
}

Image pnm(const std::string& bytes) {
  return decode_image({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "x.pnm");
}

TEST(Pnm, NumbersOfEverySizeBecomeBytes) {
  using namespace std::string_literals;
  const Image colours = pnm("P6 # two pixels\n2 1\n255\n\x01\x02\x03\xff\x80\x00"s);
  EXPECT_EQ(colours.width, 2);
  EXPECT_EQ(colours.rgb, (std::vector<std::uint8_t>{1, 2, 3, 255, 128, 0}));
  EXPECT_EQ(pnm("P5\n1 2\n15\n\x0f\x05"s).rgb, (std::vector<std::uint8_t>{255, 255, 255, 85, 85, 85}));
  EXPECT_EQ(pnm("P5 1 2 65535 \x80\x80\x01\x00"s).rgb, (std::vector<std::uint8_t>{128, 128, 128, 1, 1, 1}));
}

TEST(Pnm, WhatIsMissingOrTooLargeIsSaid) {
  for (const char* const bad :
       {"P6\n2 2\n255\nabcdefghijk", "P5\n2\n", "P5\n0 2\n255\n", "P5\n2 2\n65536\nabcdefgh",
        "P5\n99999999999999999999 2\n255\n", "P6\n1 1\n255"})
    EXPECT_THROW(pnm(bad), BrokenFile) << bad;
  try {
    pnm("P6\n2 2\n255\nabcdefghijk");
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("11 bytes of 12"), std::string::npos) << error.what();
  }
  EXPECT_THROW(pnm("P5\n16000000 16000000\n255\n"), Error);
}

// The golden files hold the bytes of Pillow 13, which resizes the rows first where that is less work; older
// Pillows and torchvision never do, nor does this program. So the last bit may differ for a picture that is
// reduced more in height.
struct ResizeCase {
  const char* folder;
  const char* picture;
  int width, height;
  Filter filter;
  bool last_bit_may_differ = false;
};
class Resizing : public testing::TestWithParam<ResizeCase> {};

TEST_P(Resizing, EqualsPillow) {
  const ResizeCase& c = GetParam();
  const Image image = load_image(images / "pictures" / c.picture);
  const SafetensorsFile file = SafetensorsFile::open(images / c.folder / "expected.safetensors");
  const TensorView& expected = file.tensors().at(fs::path(c.picture).stem().string());
  ASSERT_EQ(expected.shape, (std::vector<std::int64_t>{c.height, c.width, 3}));
  const auto want = bytes_of(expected);
  const auto have = resample(image, c.width, c.height, c.filter).rgb;
  ASSERT_EQ(have.size(), want.size());
  int largest = 0;
  for (std::size_t i = 0; i < have.size(); ++i)
    largest = std::max(largest, std::abs(int{have[i]} - int{want[i]}));
  EXPECT_LE(largest, c.last_bit_may_differ ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(
    Pillow, Resizing,
    testing::Values(ResizeCase{"exact-bilinear", "gradient.png", 24, 16, Filter::bilinear},
                    ResizeCase{"exact-bilinear", "tiny.png", 24, 16, Filter::bilinear},
                    ResizeCase{"exact-bilinear", "gray.png", 24, 16, Filter::bilinear, true},
                    ResizeCase{"nearest-unnormalised", "gradient.png", 16, 16, Filter::nearest},
                    ResizeCase{"nearest-unnormalised", "rgba.png", 16, 16, Filter::nearest},
                    ResizeCase{"no-crop", "gradient.png", 18, 13, Filter::bicubic},
                    ResizeCase{"no-crop", "palette.png", 15, 13, Filter::bicubic},
                    ResizeCase{"no-crop", "tiny.png", 21, 13, Filter::bicubic}));

} // namespace
} // namespace hydrascope
