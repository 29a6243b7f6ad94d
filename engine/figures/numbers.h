// The numbers of a figure exactly as they are drawn, at full precision, for other programs.
#pragma once

#include <string>

#include "engine/figures/figure.h"

namespace hydrascope {

// One row for each number: panel, kind, title, row, row_label, column, column_label, x, value. The first line
// is a comment that begins with # and holds the provenance. Masked cells have an empty value.
std::string csv_text(const Figure& figure);

// The same rows for pasting into a spreadsheet: tabs between them, without the provenance. Tabs and line
// breaks in labels become spaces.
std::string tsv_text(const Figure& figure);

// {title, subtitle, provenance, panels: [{kind, title, …, values}]}; masked cells are null.
std::string json_text(const Figure& figure);

// Little-endian float32 (bars, tokens and lines: float64). Panels of one shape are stacked on a first axis.
// Throws UsageError if the panels differ in shape.
std::string npy_bytes(const Figure& figure);

} // namespace hydrascope
