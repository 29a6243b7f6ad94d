// A user's feature map: settings, parameters and heads of functions.
#include "engine/attention/own/map_source.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] { parse_map_source("x", std::string(fuzz::text_of(data, size))); });
}
