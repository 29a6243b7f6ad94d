#include "engine/base/files.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
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

// Pages of mapped files that cannot be read: the kernel sends SIGBUS to the thread that touches one.

struct Guard {
  std::atomic<std::byte*> begin{nullptr}; // null: free
  std::atomic<std::size_t> size{0};       // 0 while it is free: matches no address
  std::atomic<bool> lost{false};
};
static_assert(std::atomic<std::byte*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
// Global because a signal handler has no other way to them; a fixed number because it must not allocate.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
constinit std::array<Guard, 4096> guards;
constinit std::atomic<int> lost_mappings{0};
struct sigaction previous_action {};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

// Puts zeros where the file of this address was, so that the thread goes on, and marks the mapping. Returns
// whether there was one.
bool replace_by_zeros(const std::byte* const address) {
  for (Guard& guard : guards) {
    std::byte* const begin = guard.begin.load();
    const std::size_t size = guard.size.load();
    if (begin == nullptr || std::less<>()(address, begin) || !std::less<>()(address, begin + size)) continue;
    if (guard.begin.load() != begin) continue; // another mapping has taken this place meanwhile
    const int problem = errno;
    if (!guard.lost.exchange(true)) ++lost_mappings;
    const bool replaced =
        ::mmap(begin, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
    errno = problem;
    return replaced;
  }
  return false;
}

// A signal that has another cause is passed on.
void on_bus_error(const int signal, siginfo_t* const info, void* const context) {
  const bool has_address = info->si_code > 0; // the kernel's, not kill()'s
  if (has_address && replace_by_zeros(static_cast<const std::byte*>(info->si_addr))) return;
  if ((previous_action.sa_flags & SA_SIGINFO) != 0 && previous_action.sa_sigaction != nullptr)
    previous_action.sa_sigaction(signal, info, context);
  else
    ::sigaction(SIGBUS, &previous_action, nullptr); // the access is repeated and ends the program
}

int guard_mapping(void* const address, const std::size_t size) {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    return ::sigaction(SIGBUS, &action, &previous_action) == 0;
  }();
  if (!installed) return -1;
  for (std::size_t i = 0; i < guards.size(); ++i) {
    std::byte* free = nullptr;
    if (!guards[i].begin.compare_exchange_strong(free, static_cast<std::byte*>(address))) continue;
    guards[i].size = size;
    return static_cast<int>(i);
  }
  return -1;
}

int open_lock_file(const std::filesystem::path& file, const char* remedy) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) refuse(file, errno, remedy);
  return descriptor;
}

} // namespace

FileMapping::FileMapping(const std::filesystem::path& file) : file_(file) {
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
  if (size_ > 0) guard_ = guard_mapping(address_, size_);
}

FileMapping::~FileMapping() {
  if (guard_ >= 0) {
    Guard& guard = guards[static_cast<std::size_t>(guard_)];
    if (guard.lost.exchange(false)) --lost_mappings;
    guard.size = 0;
    guard.begin = nullptr;
  }
  if (size_ > 0) ::munmap(address_, size_);
}

FileMapping::FileMapping(FileMapping&& other) noexcept
    : file_(std::move(other.file_)),
      address_(std::exchange(other.address_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      guard_(std::exchange(other.guard_, -1)) {}

bool FileMapping::lost() const { return guard_ >= 0 && guards[static_cast<std::size_t>(guard_)].lost; }

void FileMapping::require() const {
  if (any_mapping_lost() && lost())
    throw Error(file_.string(), "could not be read to its end: it was shortened, or its disk is gone",
                "put the file back and try again");
}

bool any_mapping_lost() { return lost_mappings > 0; }

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
