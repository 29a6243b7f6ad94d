// Texts with a label each, as the GLUE tasks come: a tab-separated table, an example a line. Plain header.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hydrascope {

// Columns are counted from 1. CoLA: text 4, label 2. MRPC: text 4, pair 5, label 1, with a header.
struct LabelledColumns {
  int text = 1;
  int pair = 0; // the second text of each example; 0: there is none
  int label = 2;

  bool operator==(const LabelledColumns&) const = default;
};

struct LabelledText {
  std::string text;
  std::optional<std::string> pair;
  std::string label; // as it stands in the table

  bool operator==(const LabelledText&) const = default;
};

// The examples of a file in its order. No quoting; a byte-order mark, blank lines, carriage returns at the
// ends of lines and, with `header`, the first line are skipped; `limit` > 0 takes the first of the examples.
// An empty text is an example like any other. Throws Error (missing file, no examples, a line without one of
// the columns or with an empty label; line, reason and remedy are named), UsageError (a column below 1, two
// that are the same).
std::vector<LabelledText> read_labelled_texts(const std::filesystem::path& file,
                                              const LabelledColumns& columns, bool header, int limit);

} // namespace hydrascope
