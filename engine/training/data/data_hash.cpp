#include "engine/training/data/data_hash.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>

#include "engine/base/capture.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope::training {
namespace {

namespace fs = std::filesystem;

std::string hash_of_folder(const fs::path& folder) {
  std::vector<std::string> lines;
  try {
    for (const auto& entry :
         fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink))
      if (entry.is_regular_file()) lines.push_back(listed_file(entry.path(), folder));
  } catch (const fs::filesystem_error& error) {
    throw Error(folder.string(), error.what(), "check the folder and its permissions");
  }
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += line;
  return sha256_of_text(text);
}

std::string hash_of(const fs::path& data) {
  std::error_code failure;
  if (fs::is_directory(data, failure)) return hash_of_folder(data);
  if (fs::exists(data, failure)) return sha256_of_file(data);
  if (const auto capture = capture_address(data)) return hash_of(capture->path); // FILE:PART
  return sha256_of_file(data);                                                   // which says what is wrong
}

// NAME and SIZE, a tab between them.
std::string name_and_size(const fs::path& file, const fs::path& folder) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(file, failed);
  if (failed) throw Error(file.string(), failed.message(), "check the path and its permissions");
  return fmt::format("{}\t{}", file.lexically_relative(folder).generic_string(), size);
}

} // namespace

std::string listed_file(const fs::path& file, const fs::path& folder) {
  return name_and_size(file, folder) + "\n";
}

std::string stamped_file(const fs::path& file, const fs::path& folder) {
  std::error_code failed;
  const fs::file_time_type time = fs::last_write_time(file, failed);
  if (failed) throw Error(file.string(), failed.message(), "check the path and its permissions");
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
  return fmt::format("{}\t{}\n", name_and_size(file, folder), since.count());
}

std::string data_hash(const std::vector<fs::path>& data) {
  if (data.size() == 1) return hash_of(data.front());
  std::string hashes;
  for (const fs::path& one : data) hashes += hash_of(one) + "\n";
  return sha256_of_text(hashes);
}

} // namespace hydrascope::training
