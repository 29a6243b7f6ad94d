// Animated WebP: what is written is read back with libwebp's decoder.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <webp/demux.h>

#include "engine/base/animation.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

Image filled(int width, int height, std::uint8_t value) {
  return {width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height), value)};
}

struct Shown {
  std::uint8_t red = 0; // of the first pixel
  int until = 0;        // milliseconds from the start
};

std::vector<Shown> decoded(const std::string& bytes, int width, int height) {
  const WebPData data{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  WebPAnimDecoder* const decoder = WebPAnimDecoderNew(&data, nullptr);
  std::vector<Shown> frames;
  if (decoder == nullptr) return frames;
  WebPAnimInfo info;
  EXPECT_TRUE(WebPAnimDecoderGetInfo(decoder, &info));
  EXPECT_EQ(static_cast<int>(info.canvas_width), width);
  EXPECT_EQ(static_cast<int>(info.canvas_height), height);
  EXPECT_EQ(info.loop_count, 0U) << "without end";
  while (WebPAnimDecoderHasMoreFrames(decoder) != 0) {
    std::uint8_t* pixels = nullptr;
    int until = 0;
    if (WebPAnimDecoderGetNext(decoder, &pixels, &until) == 0) break;
    frames.push_back({pixels[0], until});
  }
  WebPAnimDecoderDelete(decoder);
  return frames;
}

TEST(Animation, ShowsEachPictureForItsTimeAndEqualNeighboursAsOne) {
  Animation animation(32, 16);
  animation.add(filled(32, 16, 0), 40);
  animation.add(filled(32, 16, 0), 60);
  animation.add(filled(32, 16, 255), 500);
  animation.add(filled(32, 16, 0), 200);
  EXPECT_EQ(animation.milliseconds(), 800);
  const std::vector<Shown> frames = decoded(animation.finish(), 32, 16);
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].red, 0);
  EXPECT_EQ(frames[0].until, 100);
  EXPECT_EQ(frames[1].red, 255);
  EXPECT_EQ(frames[1].until, 600);
  EXPECT_EQ(frames[2].red, 0);
  EXPECT_EQ(frames[2].until, 800);
}

TEST(Animation, RefusesPicturesOfAnotherSizeAndNoPicture) {
  Animation animation(32, 16);
  EXPECT_THROW(animation.add(filled(16, 32, 0), 40), Error);
  EXPECT_THROW(animation.finish(), Error);
  EXPECT_THROW(Animation(0, 16), Error);
}

} // namespace
} // namespace hydrascope
