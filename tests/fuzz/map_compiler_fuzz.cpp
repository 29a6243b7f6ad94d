// A user's feature map through TorchScript's compiler and the list of allowed operators.
#include "engine/attention/own/map_compiler.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses(
      [&] { compile(parse_map_source("x", std::string(fuzz::text_of(data, size)))); });
}
