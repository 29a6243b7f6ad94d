#include "engine/base/process.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>

namespace hydrascope {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

void sleep_for(const std::chrono::milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, duration, [] { return false; });
}

} // namespace hydrascope
