// A figure's numbers as text for other programs: CSV, TSV, JSON, NPY at full precision, and tables as LaTeX
// and Markdown.
#pragma once

#include <string>
#include <vector>

#include "engine/figures/figure.h"

namespace hydrascope {

// One row for each number: panel, kind, title, row, row_label, column, column_label, x, value. The first line
// is a comment that begins with # and holds the provenance. Masked cells have an empty value.
std::string csv_text(const Figure& figure);

// The same rows for pasting into a spreadsheet: separated by tabs, without the provenance. Tabs and line
// breaks in labels become spaces.
std::string tsv_text(const Figure& figure);

// {title, subtitle, provenance, panels: [{kind, title, …, values}]}; masked cells are null.
std::string json_text(const Figure& figure);

// Little-endian float32 (bars, tokens and lines: float64). Panels of one shape are stacked on a first axis.
// Throws UsageError if the panels differ in shape.
std::string npy_bytes(const Figure& figure);

// All tables of a figure, one after another; the provenance is stored in a comment. Throws UsageError if the
// figure has no table.
std::string latex_text(const Figure& figure);    // tabular, needs \usepackage{booktabs}
std::string markdown_text(const Figure& figure); // pipe tables

struct TableCell {
  std::string text;  // with the column's decimals and a true minus sign; "—" for NaN
  bool best = false; // the best value of its column, or one with the same text
};
// The cells as printed, by row, then column. Missing values are read as NaN.
std::vector<std::vector<TableCell>> table_cells(const TablePanel& panel);

} // namespace hydrascope
