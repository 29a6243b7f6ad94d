// What write_figure() stored in a file: SVG, PDF, PNG, CSV and JSON by their content.
#include "engine/figures/figure.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] { provenance_of(fuzz::text_of(data, size), "x"); });
}
