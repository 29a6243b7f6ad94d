// A lock that processes (and threads) share by a file's name: advisory, and gone with the process that held
// it.
#pragma once

#include <filesystem>
#include <stop_token>

namespace hydrascope {

class FileLock {
public:
  // Waits until nobody else holds it. The file is made where it is missing and stays. Throws Cancelled, Error
  // (it cannot be written; `remedy` says what to do).
  FileLock(const std::filesystem::path& file, const std::stop_token& stop, const char* remedy);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

private:
  int descriptor_ = -1;
};

} // namespace hydrascope
