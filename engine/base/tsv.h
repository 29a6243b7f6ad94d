// Tab-separated tables: one record per line, no quoting.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

struct TsvLine {
  std::int64_t number = 0; // in the file, from 1
  std::vector<std::string> cells;
};

// The lines of a file in order. Skips a byte-order mark, blank lines and carriage returns at the ends of
// lines; quotes have no special meaning. Throws Error (missing file; what is not UTF-8,
// with line and byte).
std::vector<TsvLine> read_tsv(const std::filesystem::path& file);

// Cell `column` (from 1) of a line. Throws Error that names the file, the line and `option`, which chose the
// column.
const std::string& tsv_cell(const TsvLine& line, int column, const std::filesystem::path& file,
                            std::string_view option);

} // namespace hydrascope
