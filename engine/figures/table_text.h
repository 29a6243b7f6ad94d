// Tables as text that papers and web pages take. Plain header.
#pragma once

#include <string>
#include <vector>

#include "engine/figures/figure.h"

namespace hydrascope {

struct TableCell {
  std::string text;  // with the column's decimals and a true minus sign; "—" for NaN
  bool best = false; // of its column; all that print alike are
};
// By row, then column. Missing values count as NaN.
std::vector<std::vector<TableCell>> table_cells(const TablePanel& panel);

// All tables of a figure, one after another; the provenance stands in a comment.
// Throws UsageError if the figure has none.
std::string latex_text(const Figure& figure);    // tabular, needs \usepackage{booktabs}
std::string markdown_text(const Figure& figure); // pipe tables

} // namespace hydrascope
