// What an adapter's metadata say: its base, its layers with their kernels, its classes.
#include "engine/models/model_info.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses(
      [&] { read_adapter_info(fuzz::file("x.safetensors", fuzz::text_of(data, size))); });
}
