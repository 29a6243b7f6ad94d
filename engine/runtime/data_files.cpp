#include "engine/runtime/data_files.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "engine/plain/error.h"
#include "engine/plain/paths.h"

namespace hydrascope {
namespace {

// Cell `column` (from 1) of a tab-separated line.
std::string cell_of(const std::string& line, int column, const std::filesystem::path& file,
                    std::int64_t number) {
  std::size_t begin = 0;
  for (int i = 1; i < column; ++i) {
    const std::size_t tab = line.find('\t', begin);
    if (tab == std::string::npos)
      throw Error(file.string(), fmt::format("line {} has no column {}", number, column),
                  "choose another --column");
    begin = tab + 1;
  }
  return line.substr(begin, line.find('\t', begin) - begin);
}

} // namespace

std::vector<std::string> read_texts(const std::filesystem::path& file, int column, bool header, int limit) {
  std::string whole = read_text_file(file);
  if (whole.starts_with("\xef\xbb\xbf")) whole.erase(0, 3);
  std::istringstream lines(whole);
  std::vector<std::string> texts;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (header && number == 1) continue;
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    if (column > 0) line = cell_of(line, column, file, number);
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    texts.push_back(line);
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
