// safetensors: header, shapes, offsets.
#include "engine/base/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    const auto file = SafetensorsFile::open(fuzz::file("x.safetensors", fuzz::text_of(data, size)));
    std::size_t sum = 0; // reads every byte that a view promises
    for (const auto& [name, view] : file.tensors())
      for (const std::byte byte : view.bytes) sum += std::to_integer<std::size_t>(byte);
    volatile std::size_t kept = sum;
    static_cast<void>(kept);
  });
}
