#include "engine/base/file_lock.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/sleep.h"

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

std::optional<PieceLock> PieceLock::take(const std::filesystem::path& file, const std::int64_t piece,
                                         const char* remedy) {
  PieceLock lock(open_lock_file(file, remedy));
  // Of the open file, not of the process as POSIX's own are: those exclude no thread of the same process, and
  // go when any of its descriptors of the file is closed.
  struct flock byte = {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = piece;
  byte.l_len = 1;
  if (::fcntl(lock.descriptor_, F_OFD_SETLK, &byte) == 0) return lock;
  if (errno == EAGAIN || errno == EACCES) return std::nullopt;
  refuse(file, errno, remedy);
}

PieceLock::~PieceLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

} // namespace hydrascope
