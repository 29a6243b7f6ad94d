#include "engine/base/tsv.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"

namespace hydrascope {

std::vector<TsvLine> read_tsv(const std::filesystem::path& file) {
  const std::string whole = read_text_file(file, any_size);
  std::string_view rest = whole;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
  if (const auto invalid = first_invalid_utf8(rest))
    throw Error(file.string(), invalid_utf8_line_text(rest, *invalid), "save the file as UTF-8");
  std::vector<TsvLine> lines;
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    TsvLine& read = lines.emplace_back();
    read.number = number;
    for (const std::string_view cell : split(line, '\t')) read.cells.emplace_back(cell);
  }
  return lines;
}

const std::string& tsv_cell(const TsvLine& line, const int column, const std::filesystem::path& file,
                            const std::string_view option) {
  if (column < 1 || static_cast<std::size_t>(column) > line.cells.size())
    throw Error(file.string(), fmt::format("line {} has no column {}", line.number, column),
                fmt::format("choose another {}; columns are parted by tabs and counted from 1", option));
  return line.cells[static_cast<std::size_t>(column - 1)];
}

} // namespace hydrascope
