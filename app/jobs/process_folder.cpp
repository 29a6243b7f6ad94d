#include "app/jobs/process_folder.h"

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = "lock";

// The lock of a process's folder, which ends with the process; nullopt as long as that process lives.
std::optional<ItemLock> take_lock(const fs::path& folder) {
  return ItemLock::take(folder / lock_name, 0, "make the folder writable");
}

void remove_left_folders(const fs::path& parent) {
  std::error_code failure;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(parent, failure))
    if (fs::exists(entry.path() / lock_name, failure)) folders.push_back(entry.path());
  for (const fs::path& folder : folders) {
    try {
      if (const std::optional<ItemLock> left = take_lock(folder)) fs::remove_all(folder, failure);
    } catch (const Error&) {
      continue; // without locks its owner cannot be determined
    }
  }
}

} // namespace

ProcessFolder::ProcessFolder(const fs::path& parent) {
  remove_left_folders(parent);
  std::error_code failure;
  fs::create_directories(parent, failure);
  for (int number = 0;; ++number) {
    path_ = parent / fmt::format("{}-{}", getpid(), number);
    // Others must not read what comes.
    const bool made = mkdir(path_.c_str(), S_IRWXU) == 0;
    if (!made && errno == EEXIST) continue; // another container's process may have the same number
    if (!made) return;                      // writing there fails with the reason
    try {
      std::optional<ItemLock> lock = take_lock(path_);
      if (!lock) continue; // a process that starts now takes it for one that was left
      lock_.emplace(std::move(*lock));
    } catch (const Error&) {
      return; // no locks here: others leave it
    }
    return;
  }
}

ProcessFolder::~ProcessFolder() {
  std::error_code failure;
  fs::remove_all(path_, failure);
}

} // namespace hydrascope::app
