#include "app/shell/window_number.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

namespace hydrascope::app {

WindowNumber::WindowNumber(const std::filesystem::path& folder) {
  constexpr int most = 100; // windows at once; more share the last one's files
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  for (int number = 1; number <= most; ++number) {
    const std::filesystem::path file = folder / fmt::format("window-{}.lock", number);
    const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) return;
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0) {
      number_ = number;
      lock_ = lock;
      return;
    }
    const bool taken = errno == EWOULDBLOCK;
    ::close(lock);
    if (!taken) return;
    number_ = number;
  }
}

WindowNumber::~WindowNumber() {
  if (lock_ >= 0) ::close(lock_);
}

std::string WindowNumber::file_name(const std::string& name) const {
  return number_ == 1 ? name + ".json" : fmt::format("{}-{}.json", name, number_);
}

} // namespace hydrascope::app
