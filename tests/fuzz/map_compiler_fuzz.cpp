// A user's feature map through TorchScript's compiler and the list of allowed operators, and tried on a few
// tokens.
#include <ATen/Parallel.h>

#include "engine/attention/own/map_script.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  [[maybe_unused]] static const bool alone = [] {
    at::set_num_threads(1); // one target runs on each processor
    return true;
  }();
  return fuzz::accepts_or_refuses([&] {
    constexpr std::int64_t heads = 2, head_width = 4;
    MapScript::of(parse_map_source("x", std::string(fuzz::text_of(data, size))))->problem(heads, head_width);
  });
}
