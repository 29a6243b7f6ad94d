// Captures: layers, masks, tokens and parts of a safetensors file, and the numbers that are shown first.
#include "engine/base/capture.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    const std::filesystem::path file = fuzz::file("x.safetensors", fuzz::text_of(data, size));
    const auto address = capture_address(file);
    const Capture capture = Capture::open(file);
    if (address) part_of(capture, *address);
    capture.content_hash();
    for (std::size_t i = 0; i < capture.layers().size(); ++i) {
      const CaptureLayer& layer = capture.layers()[i];
      capture.tokens(layer.keys, layer.batch - 1);
      capture.check_numbers(i, layer.batch - 1);
    }
  });
}
