// A folder for what a process keeps while it runs.
#pragma once

#include <filesystem>
#include <optional>

#include "engine/base/files.h"

namespace hydrascope::app {

// PARENT/PID-NUMBER; removed at the end. A lock tells processes that run from those that were killed.
class ProcessFolder {
public:
  // Removes the folders in `parent` of processes that have ended without doing so. A folder that cannot be
  // made is an error when something is written into it.
  explicit ProcessFolder(const std::filesystem::path& parent);
  ~ProcessFolder();
  ProcessFolder(const ProcessFolder&) = delete;
  ProcessFolder& operator=(const ProcessFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
  std::optional<ItemLock> lock_;
};

} // namespace hydrascope::app
