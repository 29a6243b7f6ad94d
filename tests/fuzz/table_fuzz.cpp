// Tables: lines, cells and columns of TSV; loss curves, and what `bench` and `recall` print, for figures.
#include "app/commands/figure/measured_data.h"
#include "engine/base/tsv.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  const std::filesystem::path file = fuzz::file("x", fuzz::text_of(data, size));
  fuzz::accepts_or_refuses([&] {
    for (const TsvLine& line : read_tsv(file)) tsv_cell(line, 2, file, "--column");
  });
  fuzz::accepts_or_refuses([&] { app::read_curve(file); });
  fuzz::accepts_or_refuses([&] { app::read_roofline_records(file); });
  return fuzz::accepts_or_refuses([&] { app::read_recall_records(file); });
}
