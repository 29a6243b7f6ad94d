// The texts and pictures that measuring and training read. Plain header.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hydrascope {

// The texts of a file: a line each, or with `column` > 0 that column of tab-separated lines (no quoting). A
// byte-order mark and empty texts are skipped, with `header` the first line as well; `limit` > 0 takes the
// first of them. Throws Error (missing file, a line without that column).
std::vector<std::string> read_texts(const std::filesystem::path& file, int column, bool header, int limit);

// A text, and the second one of a pair.
struct TextOrPair {
  std::string text;
  std::optional<std::string> second;
};
// The same with a second text from column `pair_column`, 0: none.
std::vector<TextOrPair> read_pairs(const std::filesystem::path& file, int column, int pair_column,
                                   bool header, int limit);

// Every file below a folder in the order of their names, whatever it holds; with `limit` > 0 that many, taken
// evenly from the whole, which may be sorted by class. Throws Error (no such folder).
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder, int limit);

} // namespace hydrascope
