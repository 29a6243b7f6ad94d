// A whole file as read-only memory; pages come from the disk as they are touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace hydrascope {

class FileMapping {
public:
  // Throws Error (no such file, no permission, not a regular file).
  explicit FileMapping(const std::filesystem::path& file);
  ~FileMapping();
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(address_), size_}; }

private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace hydrascope
