#include "app/commands/table.h"

#include <algorithm>

#include <fmt/format.h>

namespace hydrascope::app {
namespace {

// Characters as a terminal shows them: UTF-8's continuation bytes take no room.
std::size_t displayed_width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

} // namespace

void print_table(const std::vector<std::vector<std::string>>& rows, std::string_view alignment) {
  if (rows.empty()) return;
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], displayed_width(row[column]));
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::size_t room = widths[column] - displayed_width(row[column]);
      const bool right = column < alignment.size() && alignment[column] == 'r';
      if (right) line.append(room, ' ');
      line += row[column];
      if (column + 1 < row.size()) line.append((right ? 0 : room) + 2, ' ');
    }
    fmt::print("{}\n", line);
  }
}

} // namespace hydrascope::app
