#include "engine/figures/numbers.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/json_text.h"

namespace hydrascope {
namespace {

using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little,
              "NPY files are written in the machine's own byte order");

// The numbers at the centres of an axis' cells, from its low end.
std::vector<double> centres_of(const Axis& axis, std::int64_t cells) {
  std::vector<double> centres;
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    const double share = (static_cast<double>(cell) + 0.5) / static_cast<double>(cells);
    centres.push_back(axis.logarithmic ? axis.low * std::pow(axis.high / axis.low, share)
                                       : axis.low + share * (axis.high - axis.low));
  }
  return centres;
}

// The shortest text that reads back as the same number.
template <typename Number>
std::string exact(Number value) {
  if (std::isnan(value)) {
    return "";
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string csv_quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) {
    return text;
  }
  std::string result = "\"";
  for (const char character : text) {
    result += character == '"' ? "\"\"" : std::string(1, character);
  }
  return result + "\"";
}

template <typename Names>
std::string name_at(const Names& names, std::size_t index) {
  return index < names.size() ? csv_quoted(names[index]) : "";
}

struct CsvRows {
  std::string* text;
  std::size_t panel;
  std::string kind, title;

  void add(std::size_t row, const std::string& row_label, std::size_t column, const std::string& column_label,
           const std::string& x, const std::string& value) const {
    *text += fmt::format("{},{},{},{},{},{},{},{},{}\n", panel, kind, title, row, row_label, column,
                         column_label, x, value);
  }
};

template <typename Names>
void add_cells(const CsvRows& rows, const Array& values, const Names& row_names, const Names& column_names) {
  if (values.empty()) {
    return;
  }
  const auto columns = static_cast<std::size_t>(values.extent(1));
  for (std::size_t index = 0; index < values.values.size(); ++index) {
    const auto row = index / columns, column = index % columns;
    rows.add(row, name_at(row_names, row), column, name_at(column_names, column), "",
             exact(values.values[index]));
  }
}

// A map's rows or columns: the numbers at the cells' centres where it has an axis, else the ticks.
std::vector<std::string> cell_names(const std::optional<Axis>& axis, std::int64_t cells,
                                    const std::vector<std::string>& ticks) {
  if (!axis) return ticks;
  std::vector<std::string> names;
  for (const double centre : centres_of(*axis, cells)) names.push_back(exact(centre));
  return names;
}

std::vector<std::string> row_names(const HeatMapPanel& panel) {
  const std::int64_t rows = panel.values.empty() ? std::ssize(panel.y_ticks) : panel.values.extent(0);
  std::vector<std::string> names = cell_names(panel.y_axis, rows, panel.y_ticks);
  if (panel.y_axis) std::ranges::reverse(names); // numbers grow upwards, rows are counted downwards
  return names;
}

std::vector<std::string> column_names(const HeatMapPanel& panel) {
  const std::int64_t columns = panel.values.empty() ? std::ssize(panel.x_ticks) : panel.values.extent(1);
  return cell_names(panel.x_axis, columns, panel.x_ticks);
}

const char* kind_of(const FigurePanel& panel) {
  constexpr const char* names[] = {"heat map", "overlay", "tokens", "bars", "lines", "table"};
  return names[panel.index()];
}

void add_panel(const CsvRows& rows, const HeatMapPanel& panel) {
  add_cells(rows, panel.values, row_names(panel), column_names(panel));
}
void add_panel(const CsvRows& rows, const OverlayPanel& panel) {
  add_cells(rows, panel.values, std::vector<std::string>{}, std::vector<std::string>{});
}
void add_panel(const CsvRows& rows, const TokensPanel& panel) {
  for (std::size_t index = 0; index < panel.tokens.size() && index < panel.values.size(); ++index) {
    rows.add(0, "", index, csv_quoted(panel.tokens[index]), "", exact(panel.values[index]));
  }
}
void add_panel(const CsvRows& rows, const BarsPanel& panel) {
  for (std::size_t index = 0; index < panel.labels.size() && index < panel.values.size(); ++index) {
    rows.add(index, csv_quoted(panel.labels[index]), 0, csv_quoted(panel.x_label), "",
             exact(panel.values[index]));
    if (index < panel.marks.size())
      rows.add(index, csv_quoted(panel.labels[index]), 1, csv_quoted(panel.marks_name), "",
               exact(panel.marks[index]));
  }
}
void add_panel(const CsvRows& rows, const LinesPanel& panel) {
  for (std::size_t line = 0; line < panel.lines.size(); ++line) {
    const auto& [name, x, y, colour, upper, upper_name, style, labels] = panel.lines[line];
    for (std::size_t point = 0; point < std::min(x.size(), y.size()); ++point) {
      rows.add(line, csv_quoted(name), point, name_at(labels, point), exact(x[point]), exact(y[point]));
      if (point < upper.size())
        rows.add(line, csv_quoted(name), point, csv_quoted(upper_name), exact(x[point]), exact(upper[point]));
    }
  }
}
void add_panel(const CsvRows& rows, const TablePanel& panel) {
  for (std::size_t row = 0; row < panel.values.size(); ++row) {
    for (std::size_t column = 0; column < panel.values[row].size() && column < panel.columns.size(); ++column)
      rows.add(row, name_at(panel.rows, row), column, csv_quoted(panel.columns[column].name), "",
               exact(panel.values[row][column]));
  }
}

ordered_json cells(const Array& values) {
  ordered_json rows = ordered_json::array();
  if (values.empty()) {
    return rows;
  }
  for (std::int64_t row = 0; row < values.extent(0); ++row) {
    ordered_json line = ordered_json::array();
    for (const float value : values.slice(row)) {
      line.push_back(std::isnan(value) ? ordered_json(nullptr) : ordered_json(static_cast<double>(value)));
    }
    rows.push_back(std::move(line));
  }
  return rows;
}

ordered_json numbers(const std::vector<double>& values) {
  ordered_json list = ordered_json::array();
  for (const double value : values) {
    list.push_back(std::isnan(value) ? ordered_json(nullptr) : ordered_json(value));
  }
  return list;
}

ordered_json scale_json(const Scale& scale) {
  return {{"colours", colour_map_name(scale.map)}, {"low", scale.low},       {"high", scale.high},
          {"logarithmic", scale.logarithmic},      {"shared", scale.shared}, {"label", scale.label}};
}

// The ends of an axis along binned cells.
ordered_json axis_json(const Axis& axis) {
  return {{"low", axis.low}, {"high", axis.high}, {"logarithmic", axis.logarithmic}};
}

void fill_json(ordered_json& json, const HeatMapPanel& panel) {
  json.update({{"note", panel.note},
               {"x_label", panel.x_label},
               {"y_label", panel.y_label},
               {"column_labels", column_names(panel)},
               {"row_labels", row_names(panel)},
               {"marked_rows", panel.marks},
               {"scale", scale_json(panel.scale)},
               {"values", cells(panel.values)}});
  if (panel.x_axis) json["x_axis"] = axis_json(*panel.x_axis);
  if (panel.y_axis) json["y_axis"] = axis_json(*panel.y_axis);
}
void fill_json(ordered_json& json, const OverlayPanel& panel) {
  json.update({{"note", panel.note},
               {"crop", {panel.crop_x, panel.crop_y, panel.crop_width, panel.crop_height}},
               {"scale", scale_json(panel.scale)},
               {"values", cells(panel.values)}});
}
void fill_json(ordered_json& json, const TokensPanel& panel) {
  json.update({{"note", panel.note},
               {"tokens", panel.tokens},
               {"scale", scale_json(panel.scale)},
               {"values", numbers(panel.values)}});
}
void fill_json(ordered_json& json, const BarsPanel& panel) {
  json.update({{"x_label", panel.x_label}, {"labels", panel.labels}, {"values", numbers(panel.values)}});
  if (!panel.marks.empty()) {
    json["marks"] = numbers(panel.marks);
    json["marks_are"] = panel.marks_name;
  }
}
void fill_json(ordered_json& json, const LinesPanel& panel) {
  ordered_json lines = ordered_json::array();
  for (const auto& line : panel.lines) {
    lines.push_back({{"name", line.name}, {"x", numbers(line.x)}, {"y", numbers(line.y)}});
    if (!line.upper.empty()) {
      lines.back()["upper"] = numbers(line.upper);
      lines.back()["upper_is"] = line.upper_name;
    }
    if (!line.labels.empty()) lines.back()["labels"] = line.labels;
  }
  json.update({{"x_label", panel.x_label}, {"y_label", panel.y_label}, {"lines", std::move(lines)}});
}

void fill_json(ordered_json& json, const TablePanel& panel) {
  ordered_json columns = ordered_json::array(), values = ordered_json::array();
  for (const auto& column : panel.columns) columns.push_back(column.name);
  for (const auto& row : panel.values) values.push_back(numbers(row));
  json.update({{"note", panel.note},
               {"row_name", panel.row_name},
               {"rows", panel.rows},
               {"columns", std::move(columns)},
               {"values", std::move(values)}});
}

ordered_json provenance_json(const Figure& figure) {
  const auto parsed = ordered_json::parse(figure.provenance, nullptr, false);
  return parsed.is_discarded() ? ordered_json(figure.provenance) : parsed;
}

// One panel's numbers as raw bytes with shape and type.
struct Block {
  std::vector<std::size_t> shape;
  std::string type, bytes;
};

template <typename Number>
Block block_of(std::vector<std::size_t> shape, const std::vector<Number>& values) {
  Block block{std::move(shape), std::is_same_v<Number, float> ? "<f4" : "<f8", {}};
  block.bytes.resize(values.size() * sizeof(Number));
  if (!values.empty()) {
    std::memcpy(block.bytes.data(), values.data(), block.bytes.size());
  }
  return block;
}

std::vector<Block> blocks_of(const FigurePanel& panel) {
  const auto map = [](const Array& values) -> std::vector<Block> {
    if (values.empty()) {
      return {};
    }
    return {block_of({values.shape.begin(), values.shape.end()}, values.values)};
  };
  if (const auto* const heat = std::get_if<HeatMapPanel>(&panel)) {
    return map(heat->values);
  }
  if (const auto* const overlay = std::get_if<OverlayPanel>(&panel)) {
    return map(overlay->values);
  }
  if (const auto* const tokens = std::get_if<TokensPanel>(&panel)) {
    return {block_of({tokens->values.size()}, tokens->values)};
  }
  if (const auto* const bars = std::get_if<BarsPanel>(&panel)) {
    if (bars->marks.size() != bars->values.size()) return {block_of({bars->values.size()}, bars->values)};
    auto both = bars->values;
    both.insert(both.end(), bars->marks.begin(), bars->marks.end());
    return {block_of({2, bars->values.size()}, both)};
  }
  if (const auto* const table = std::get_if<TablePanel>(&panel)) {
    std::vector<double> values;
    for (const auto& row : table->values) {
      for (std::size_t column = 0; column < table->columns.size(); ++column)
        values.push_back(column < row.size() ? row[column] : std::nan(""));
    }
    return {block_of({table->values.size(), table->columns.size()}, values)};
  }
  std::vector<Block> lines;
  for (const auto& line : std::get<LinesPanel>(panel).lines) {
    auto both = line.x;
    both.insert(both.end(), line.y.begin(), line.y.end());
    const bool whiskers = line.upper.size() == line.x.size();
    if (whiskers) both.insert(both.end(), line.upper.begin(), line.upper.end());
    lines.push_back(block_of({whiskers ? 3U : 2U, line.x.size()}, both));
  }
  return lines;
}

} // namespace

std::string csv_text(const Figure& figure) {
  std::string text = "# " + text_of_json(provenance_json(figure)) + "\n";
  text += "panel,kind,title,row,row_label,column,column_label,x,value\n";
  for (std::size_t index = 0; index < figure.panels.size(); ++index) {
    std::visit(
        [&](const auto& panel) {
          std::string title = panel.title;
          std::replace(title.begin(), title.end(), '\n', ' ');
          add_panel(CsvRows{&text, index, kind_of(figure.panels[index]), csv_quoted(title)}, panel);
        },
        figure.panels[index]);
  }
  return text;
}

std::string tsv_text(const Figure& figure) {
  const std::string csv = csv_text(figure);
  std::string text;
  bool quoted = false;
  for (std::size_t index = csv.find('\n') + 1; index < csv.size(); ++index) {
    const char character = csv[index];
    if (character == '"') {
      const bool doubled = quoted && index + 1 < csv.size() && csv[index + 1] == '"';
      if (doubled) text += csv[++index];
      quoted ^= !doubled;
    } else if (quoted) {
      const bool parts = character == '\t' || character == '\n' || character == '\r';
      text += parts ? ' ' : character;
    } else {
      text += character == ',' ? '\t' : character == '\t' ? ' ' : character;
    }
  }
  return text;
}

std::string json_text(const Figure& figure) {
  ordered_json document{
      {"title", figure.title}, {"subtitle", figure.subtitle}, {"provenance", provenance_json(figure)}};
  document["panels"] = ordered_json::array();
  for (const auto& panel : figure.panels) {
    ordered_json json{{"kind", kind_of(panel)}};
    std::visit(
        [&](const auto& value) {
          json["title"] = value.title;
          fill_json(json, value);
        },
        panel);
    document["panels"].push_back(std::move(json));
  }
  return text_of_json(document, 1) + "\n";
}

std::string npy_bytes(const Figure& figure) {
  std::vector<Block> blocks;
  for (const auto& panel : figure.panels) {
    for (auto& block : blocks_of(panel)) {
      blocks.push_back(std::move(block));
    }
  }
  if (blocks.empty()) {
    throw UsageError(".npy", "the figure has no numbers", "choose another figure or write .png");
  }
  std::string data;
  for (const auto& block : blocks) {
    if (block.shape != blocks.front().shape || block.type != blocks.front().type) {
      throw UsageError(".npy", "the figure's panels differ in shape and one array cannot hold them",
                       "write .csv or .json, or draw one panel");
    }
    data += block.bytes;
  }
  std::string shape = blocks.size() > 1 ? std::to_string(blocks.size()) + ", " : "";
  for (const auto extent : blocks.front().shape) {
    shape += std::to_string(extent) + ", ";
  }
  // Format 1.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", blocks.front().type, shape);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

} // namespace hydrascope
