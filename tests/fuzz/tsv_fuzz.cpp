// Tables: lines, cells and columns.
#include "engine/base/tsv.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    const std::filesystem::path file = fuzz::file("x.tsv", fuzz::text_of(data, size));
    for (const TsvLine& line : read_tsv(file)) tsv_cell(line, 2, file, "--column");
  });
}
