// Open files: mapped into memory, and locks that processes and threads share by a file's name. Locks are
// advisory and end with the process that held them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>

namespace hydrascope {

// A whole file as read-only memory; pages are read from the disk when they are first accessed. If one cannot
// be read then (the file was shortened, the disk is gone), the mapping is lost: all of it reads as zeros.
// Whoever used its bytes checks that afterwards. At most 4096 mappings of a process are guarded in this way.
class FileMapping {
public:
  // Throws Error (no such file, no permission, not a regular file).
  explicit FileMapping(const std::filesystem::path& file);
  ~FileMapping();
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(address_), size_}; }
  // Throws Error if the mapping is lost. Costs nothing as long as none of the process is.
  void require() const;
  bool lost() const;

private:
  std::filesystem::path file_;
  void* address_ = nullptr;
  std::size_t size_ = 0;
  int guard_ = -1; // its place among the guarded mappings
};

// Whether any mapping that this process has now is lost.
bool any_mapping_lost();

// Frees the memory of bytes of a FileMapping: the next access reads them from the file again. Other memory
// would lose its contents.
void release_pages(std::span<const std::byte> mapped);

class FileLock {
public:
  // Waits until the lock is free. Creates the file where it is missing and leaves it there. Throws Cancelled,
  // Error (the file cannot be written; `remedy` ends the message).
  FileLock(const std::filesystem::path& file, const std::stop_token& stop, const char* remedy);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

private:
  int descriptor_ = -1;
};

// The lock of one of many work items that processes share out among them: byte `item` of the file.
class ItemLock {
public:
  // nullopt if the item is locked already. Throws Error as FileLock.
  static std::optional<ItemLock> take(const std::filesystem::path& file, std::int64_t item,
                                      const char* remedy);
  ~ItemLock();
  ItemLock(ItemLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ItemLock& operator=(ItemLock&&) = delete;

private:
  explicit ItemLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

} // namespace hydrascope
