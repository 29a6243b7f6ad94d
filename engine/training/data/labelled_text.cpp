#include "engine/training/data/labelled_text.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/tsv.h"

namespace hydrascope {
namespace {

void check(const LabelledColumns& columns) {
  const auto refuse = [](const char* option, const char* reason) {
    throw UsageError(option, reason, "name the columns of the table, counted from 1");
  };
  if (columns.text < 1) refuse("--column", "must be 1 or more");
  if (columns.label < 1) refuse("--label-column", "must be 1 or more");
  if (columns.pair < 0) refuse("--pair-column", "must be 1 or more");
  if (columns.label == columns.text) refuse("--label-column", "is the column of the texts");
  if (columns.pair == columns.text) refuse("--pair-column", "is the column of the texts");
  if (columns.pair == columns.label) refuse("--pair-column", "is the column of the labels");
}

} // namespace

std::vector<LabelledText> read_labelled_texts(const std::filesystem::path& file,
                                              const LabelledColumns& columns, const bool header,
                                              const int limit) {
  check(columns);
  if (std::filesystem::is_directory(file))
    throw UsageError(file.string(), "is a folder, not a table of texts and labels",
                     "name a tab-separated file, or choose a model for images with --model");
  std::vector<LabelledText> texts;
  for (const TsvLine& line : read_tsv(file)) {
    if (header && line.number == 1) continue;
    if (limit > 0 && texts.size() >= static_cast<std::size_t>(limit)) break;
    LabelledText& read = texts.emplace_back();
    read.text = tsv_cell(line, columns.text, file, "--column");
    if (columns.pair > 0) read.pair = tsv_cell(line, columns.pair, file, "--pair-column");
    read.label = tsv_cell(line, columns.label, file, "--label-column");
    if (read.label.empty())
      throw Error(file.string(), fmt::format("line {} has no label in column {}", line.number, columns.label),
                  "write one, or choose another --label-column");
  }
  if (texts.empty())
    throw Error(file.string(), header ? "holds no example below its header" : "holds no example",
                "a line is a text and its label, parted by a tab");
  return texts;
}

} // namespace hydrascope
