// Tables as LaTeX and Markdown.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/figures/numbers.h"
#include "engine/figures/scale.h"

namespace hydrascope {
namespace {

double value_at(const TablePanel& panel, std::size_t row, std::size_t column) {
  return row < panel.values.size() && column < panel.values[row].size()
             ? panel.values[row][column]
             : std::numeric_limits<double>::quiet_NaN();
}

// The text of a column's best value; empty if the column has no better or worse.
std::string best_of(const TablePanel& panel, std::size_t column) {
  const auto& [name, better, decimals] = panel.columns[column];
  if (better == TablePanel::Better::neither || panel.rows.size() < 2) return "";
  const double sign = better == TablePanel::Better::lower ? 1 : -1;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < panel.rows.size(); ++row) {
    const double value = value_at(panel, row, column);
    if (!std::isnan(value)) best = std::min(best, sign * value);
  }
  return std::isinf(best) ? "" : decimal_text(sign * best, decimals);
}

std::vector<const TablePanel*> tables_of(const Figure& figure, const char* ending) {
  std::vector<const TablePanel*> tables;
  for (const FigurePanel& panel : figure.panels)
    if (const auto* const table = std::get_if<TablePanel>(&panel)) tables.push_back(table);
  if (tables.empty())
    throw UsageError(ending, "this figure has no table", "write .svg, .pdf or .png, or its numbers as .csv");
  return tables;
}

std::string latex_escaped(std::string_view text) {
  std::string escaped;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const auto rest = text.substr(index);
    // Characters that a LaTeX font may lack.
    static constexpr std::pair<std::string_view, std::string_view> special[] = {{"\\", "\\textbackslash{}"},
                                                                                {"~", "\\textasciitilde{}"},
                                                                                {"^", "\\textasciicircum{}"},
                                                                                {"‖", "$\\|$"},
                                                                                {"ρ", "$\\rho$"},
                                                                                {"φ", "$\\phi$"},
                                                                                {"√", "$\\sqrt{}$"},
                                                                                {"·", "$\\cdot$"},
                                                                                {"−", "$-$"},
                                                                                {"—", "---"},
                                                                                {"×", "$\\times$"},
                                                                                {"≥", "$\\ge$"},
                                                                                {"≤", "$\\le$"}};
    const auto found =
        std::ranges::find_if(special, [&](const auto& pair) { return rest.starts_with(pair.first); });
    if (found != std::end(special)) {
      escaped += found->second;
      index += found->first.size() - 1;
      continue;
    }
    if (std::string_view("&%$#_{}").find(text[index]) != std::string_view::npos) escaped += '\\';
    escaped += text[index];
  }
  return escaped;
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string markdown_escaped(std::string text) {
  std::string escaped;
  for (const char character : one_line(std::move(text))) {
    if (character == '|' || character == '*' || character == '_') escaped += '\\';
    escaped += character;
  }
  return escaped;
}

} // namespace

std::vector<std::vector<TableCell>> table_cells(const TablePanel& panel) {
  std::vector<std::vector<TableCell>> cells(panel.rows.size(), std::vector<TableCell>(panel.columns.size()));
  for (std::size_t column = 0; column < panel.columns.size(); ++column) {
    const std::string best = best_of(panel, column);
    for (std::size_t row = 0; row < panel.rows.size(); ++row) {
      TableCell& cell = cells[row][column];
      cell.text = decimal_text(value_at(panel, row, column), panel.columns[column].decimals);
      cell.best = !best.empty() && cell.text == best;
    }
  }
  return cells;
}

std::string latex_text(const Figure& figure) {
  std::string text = "% " + one_line(figure.title) + "\n";
  if (!figure.provenance.empty()) text += "% " + one_line(figure.provenance) + "\n";
  for (const TablePanel* const table : tables_of(figure, ".tex")) {
    if (!table->title.empty()) text += "% " + one_line(table->title) + "\n";
    text += "\\begin{tabular}{l" + std::string(table->columns.size(), 'r') + "}\n\\toprule\n";
    text += latex_escaped(table->row_name);
    for (const auto& column : table->columns) text += " & " + latex_escaped(column.name);
    text += " \\\\\n\\midrule\n";
    const auto cells = table_cells(*table);
    for (std::size_t row = 0; row < table->rows.size(); ++row) {
      text += latex_escaped(one_line(table->rows[row]));
      for (const TableCell& cell : cells[row])
        text += " & " + (cell.best ? "\\textbf{" + latex_escaped(cell.text) + "}" : latex_escaped(cell.text));
      text += " \\\\\n";
    }
    text += "\\bottomrule\n\\end{tabular}\n";
    if (!table->note.empty()) text += "% " + one_line(table->note) + "\n";
  }
  return text;
}

std::string markdown_text(const Figure& figure) {
  std::string text;
  // A comment ends at the first "--" followed by ">": the JSON's text may hold one.
  std::string provenance = one_line(figure.provenance);
  for (auto at = provenance.find("-->"); at != std::string::npos; at = provenance.find("-->", at))
    provenance.replace(at, 3, "--\\u003e");
  if (!provenance.empty()) text += "<!-- " + provenance + " -->\n\n";
  for (const TablePanel* const table : tables_of(figure, ".md")) {
    const std::string& title = table->title.empty() ? figure.title : table->title;
    if (!title.empty()) text += "**" + markdown_escaped(title) + "**\n\n";
    text += "| " + markdown_escaped(table->row_name) + " |";
    for (const auto& column : table->columns) text += " " + markdown_escaped(column.name) + " |";
    text += "\n|---|";
    for (std::size_t column = 0; column < table->columns.size(); ++column) text += "---:|";
    text += "\n";
    const auto cells = table_cells(*table);
    for (std::size_t row = 0; row < table->rows.size(); ++row) {
      text += "| " + markdown_escaped(table->rows[row]) + " |";
      for (const TableCell& cell : cells[row])
        text += cell.best ? " **" + cell.text + "** |" : " " + cell.text + " |";
      text += "\n";
    }
    if (!table->note.empty()) text += "\n" + markdown_escaped(table->note) + "\n";
    text += "\n";
  }
  return text;
}

} // namespace hydrascope
