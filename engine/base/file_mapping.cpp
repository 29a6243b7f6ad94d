#include "engine/base/file_mapping.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace hydrascope {

FileMapping::FileMapping(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw Error(file.string(), std::strerror(errno), "check the path and its permissions");
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw Error(file.string(), "is not a regular file", "name a file");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) address_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (address_ == MAP_FAILED) throw Error(file.string(), std::strerror(error), "free some memory");
}

FileMapping::~FileMapping() {
  if (size_ > 0) ::munmap(address_, size_);
}

FileMapping::FileMapping(FileMapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}

} // namespace hydrascope
