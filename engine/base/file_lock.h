// Locks that processes (and threads) share by a file's name: advisory, and gone with the process that held
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <utility>

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

// One of many pieces of work that are shared out, each a byte of the file: held by whoever works at it.
class PieceLock {
public:
  // Nothing if somebody else holds this piece. Throws Error as above.
  static std::optional<PieceLock> take(const std::filesystem::path& file, std::int64_t piece,
                                       const char* remedy);
  ~PieceLock();
  PieceLock(PieceLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  PieceLock& operator=(PieceLock&&) = delete;

private:
  explicit PieceLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

} // namespace hydrascope
