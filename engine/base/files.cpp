#include "engine/base/files.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/process.h"

namespace hydrascope {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const int problem, const char* remedy) {
  throw Error(file.string(), std::string("cannot be locked (") + std::strerror(problem) + ")", remedy);
}

int open_lock_file(const std::filesystem::path& file, const char* remedy) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) refuse(file, errno, remedy);
  return descriptor;
}

} // namespace

FileMapping::FileMapping(const std::filesystem::path& file) {
  // Opening a pipe would wait for a writer otherwise.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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

void release_pages(const std::span<const std::byte> mapped) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped.data());
  const std::size_t skipped = (page - begin % page) % page; // whole pages: others share the outer ones
  if (mapped.size() < skipped + page) return;
  auto* const first = const_cast<std::byte*>(mapped.data()) + skipped; // madvise() takes no pointer to const
  ::madvise(first, (mapped.size() - skipped) / page * page, MADV_DONTNEED);
}

FileLock::FileLock(const std::filesystem::path& file, const std::stop_token& stop, const char* remedy)
    : descriptor_(open_lock_file(file, remedy)) {
  while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int problem = errno;
    const bool taken = problem == EWOULDBLOCK || problem == EINTR;
    if (taken) sleep_for(std::chrono::milliseconds(100), stop);
    if (taken && !stop.stop_requested()) continue;
    ::close(descriptor_);
    if (stop.stop_requested()) throw Cancelled();
    refuse(file, problem, remedy);
  }
}

FileLock::~FileLock() { ::close(descriptor_); }

std::optional<ItemLock> ItemLock::take(const std::filesystem::path& file, const std::int64_t item,
                                       const char* remedy) {
  ItemLock lock(open_lock_file(file, remedy));
  // A lock of the open file description. POSIX's own belong to the process: they do not exclude its other
  // threads, and end when any of its descriptors of the file is closed.
  struct flock byte = {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = item;
  byte.l_len = 1;
  if (::fcntl(lock.descriptor_, F_OFD_SETLK, &byte) == 0) return lock;
  if (errno == EAGAIN || errno == EACCES) return std::nullopt;
  refuse(file, errno, remedy);
}

ItemLock::~ItemLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

} // namespace hydrascope
