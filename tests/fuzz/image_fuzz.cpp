// Pictures of all formats, turned upright and shrunk as a model's preparation does.
#include "engine/base/image.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    // A small file may hold a large picture, which takes long and finds nothing new.
    const Image image = decode_image({data, size}, "x", 1 << 14);
    if (image.rgb.size() != std::size_t{3} * image.width * image.height) std::abort();
    const Image small = resample(image, 16, 16, Filter::bicubic);
    crop(small, -3, 5, 20, 20);
  });
}
