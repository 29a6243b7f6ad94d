#include "engine/run/data_files.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/tsv.h"

namespace hydrascope {

std::vector<std::string> read_texts(const std::filesystem::path& file, int column, bool header, int limit) {
  std::vector<std::string> texts;
  for (TextOrPair& one : read_pairs(file, column, 0, header, limit)) texts.push_back(std::move(one.text));
  return texts;
}

std::vector<TextOrPair> read_pairs(const std::filesystem::path& file, int column, int pair_column,
                                   bool header, int limit) {
  std::vector<TextOrPair> texts;
  for (const TsvLine& line : read_tsv(file)) {
    if (header && line.number == 1) continue;
    std::string text = column > 0 ? tsv_cell(line, column, file, "--column")
                                  : fmt::format("{}", fmt::join(line.cells, "\t"));
    if (text.find_first_not_of(' ') == std::string::npos) continue;
    TextOrPair& read = texts.emplace_back();
    read.text = std::move(text);
    if (pair_column > 0) read.second = tsv_cell(line, pair_column, file, "--pair-column");
    if (limit > 0 && static_cast<int>(texts.size()) >= limit) break;
  }
  return texts;
}

std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder, int limit) {
  if (!std::filesystem::is_directory(folder))
    throw Error(folder.string(), "no such folder", "a model for images takes folders of pictures");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  const std::size_t wanted = limit > 0 ? static_cast<std::size_t>(limit) : files.size();
  if (wanted >= files.size()) return files;
  std::vector<std::filesystem::path> some;
  for (std::size_t i = 0; i < wanted; ++i) some.push_back(files[i * files.size() / wanted]);
  return some;
}

} // namespace hydrascope
