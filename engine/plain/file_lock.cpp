#include "engine/plain/file_lock.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "engine/plain/error.h"

namespace hydrascope {

FileLock::FileLock(const std::filesystem::path& file, const std::stop_token& stop, const char* remedy) {
  const auto refuse = [&](const int problem) {
    throw Error(file.string(), std::string("cannot be locked (") + std::strerror(problem) + ")", remedy);
  };
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) refuse(errno);
  std::mutex mutex;
  std::condition_variable_any stopped;
  while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int problem = errno;
    const bool taken = problem == EWOULDBLOCK || problem == EINTR;
    std::unique_lock lock(mutex);
    if (taken) stopped.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; });
    if (taken && !stop.stop_requested()) continue;
    ::close(descriptor_);
    if (stop.stop_requested()) throw Cancelled();
    refuse(problem);
  }
}

FileLock::~FileLock() { ::close(descriptor_); }

} // namespace hydrascope
