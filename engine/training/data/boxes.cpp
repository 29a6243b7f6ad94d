#include "engine/training/data/boxes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/tsv.h"

namespace hydrascope::training {
namespace {

constexpr const char* table_form = "a line is image, class, x0, y0, x1, y1, parted by tabs, in pixels";

enum Column : std::uint8_t { image, class_name, x0, y0, x1, y1, column_count };
constexpr std::array<const char*, column_count> column_names = {"image", "class", "x0", "y0", "x1", "y1"};

std::array<int, column_count> find_columns(const TsvLine& header, const std::filesystem::path& file) {
  std::array<int, column_count> columns{};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto found = std::ranges::find(header.cells, column_names.at(i));
    if (found == header.cells.end())
      throw Error(file.string(), fmt::format("its header names no column {}", column_names.at(i)),
                  table_form);
    columns.at(i) = static_cast<int>(found - header.cells.begin()) + 1;
  }
  return columns;
}

} // namespace

std::vector<ObjectBox> read_boxes(const std::filesystem::path& file) {
  const std::vector<TsvLine> lines = read_tsv(file);
  if (lines.size() < 2) throw Error(file.string(), "holds no box", table_form);
  const auto columns = find_columns(lines.front(), file);
  std::vector<ObjectBox> boxes;
  for (auto line = lines.begin() + 1; line != lines.end(); ++line) {
    const auto cell = [&](const Column which) -> const std::string& {
      const auto column = static_cast<std::size_t>(columns.at(which));
      if (column > line->cells.size())
        throw Error(file.string(), fmt::format("line {} has no {}", line->number, column_names.at(which)),
                    table_form);
      return line->cells[column - 1];
    };
    const auto pixel = [&](const Column which) {
      const std::string& text = cell(which);
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        throw Error(
            file.string(),
            fmt::format("line {}: {} is \"{}\", not a number", line->number, column_names.at(which), text),
            table_form);
      return value;
    };
    const PixelBox box{pixel(x0), pixel(y0), pixel(x1), pixel(y1)};
    if (box.x1 < box.x0 || box.y1 < box.y0)
      throw Error(file.string(), fmt::format("line {}: the box ends before it begins", line->number),
                  "x0, y0 is its first pixel, x1, y1 its last one");
    boxes.push_back({cell(image), cell(class_name), box});
  }
  return boxes;
}

bool names_picture(const std::string& image, const std::filesystem::path& picture) {
  const std::string path = picture.generic_string();
  if (!path.ends_with(image)) return false;
  return path.size() == image.size() || path[path.size() - image.size() - 1] == '/';
}

} // namespace hydrascope::training
