// Tells windows that share a folder of settings apart, so that none overwrites what another one keeps there.
#pragma once

#include <filesystem>
#include <string>

namespace hydrascope::app {

// The smallest number, from 1, that no other window has for this folder, until it is destroyed or its process
// ends, however that happens. 1 where the folder cannot be written or its file system has no locks.
class WindowNumber {
public:
  explicit WindowNumber(const std::filesystem::path& folder); // holds a lock on FOLDER/window-N.lock
  ~WindowNumber();
  WindowNumber(const WindowNumber&) = delete;
  WindowNumber& operator=(const WindowNumber&) = delete;

  // NAME.json for the first window, NAME-2.json for the second.
  std::string file_name(const std::string& name) const;

private:
  int number_ = 1;
  int lock_ = -1;
};

} // namespace hydrascope::app
