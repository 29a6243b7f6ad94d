#include "engine/base/animation.h"

#include <fmt/format.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include "engine/base/error.h"

namespace hydrascope {

struct Animation::Encoder {
  int width = 0, height = 0;
  WebPAnimEncoder* animation = nullptr;
  WebPConfig config{};

  Encoder(int pixel_width, int pixel_height) : width(pixel_width), height(pixel_height) {
    WebPAnimEncoderOptions options;
    if (WebPAnimEncoderOptionsInit(&options) == 0 || WebPConfigInit(&config) == 0)
      throw Error("animation", "the installed libwebp has another version than the program was built for");
    options.minimize_size = 1; // no key frames: the file is played from its start
    config.lossless = 1;       // letters stay legible
    config.near_lossless = 60; // rounds colours by a few steps where they vary, as in photographs
    config.method = 3;
    animation = WebPAnimEncoderNew(width, height, &options);
    if (animation == nullptr)
      throw Error("animation", fmt::format("{} × {} pixels cannot be encoded", width, height),
                  "WebP takes 1 to 16383 pixels a side");
  }
  ~Encoder() { WebPAnimEncoderDelete(animation); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  void add(const Image& image, int begin) {
    WebPPicture picture;
    if (WebPPictureInit(&picture) == 0)
      throw Error("animation", "the installed libwebp is of another version");
    picture.use_argb = 1;
    picture.width = width;
    picture.height = height;
    const bool added = WebPPictureImportRGB(&picture, image.rgb.data(), 3 * width) != 0 &&
                       WebPAnimEncoderAdd(animation, &picture, begin, &config) != 0;
    WebPPictureFree(&picture);
    if (!added) fail();
  }

  std::string finish(int end) {
    WebPData data;
    WebPDataInit(&data);
    const bool done = WebPAnimEncoderAdd(animation, nullptr, end, nullptr) != 0 &&
                      WebPAnimEncoderAssemble(animation, &data) != 0;
    std::string bytes(reinterpret_cast<const char*>(data.bytes), data.size);
    WebPDataClear(&data);
    if (!done) fail();
    return bytes;
  }

private:
  [[noreturn]] void fail() const { throw Error("animation", WebPAnimEncoderGetError(animation)); }
};

Animation::Animation(int width, int height) : encoder_(std::make_unique<Encoder>(width, height)) {}

Animation::~Animation() = default;

void Animation::add(const Image& picture, int milliseconds) {
  if (picture.width != encoder_->width || picture.height != encoder_->height)
    throw Error("animation", fmt::format("a picture of {} × {} pixels among those of {} × {}", picture.width,
                                         picture.height, encoder_->width, encoder_->height));
  if (picture.rgb != last_.rgb) {
    encoder_->add(picture, end_);
    last_ = picture;
  }
  end_ += milliseconds;
}

std::string Animation::finish() {
  if (last_.rgb.empty()) throw Error("animation", "it has no picture");
  return encoder_->finish(end_);
}

} // namespace hydrascope
