#include "engine/base/sleep.h"

#include <condition_variable>
#include <mutex>

namespace hydrascope {

void sleep_for(const std::chrono::milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, duration, [] { return false; });
}

} // namespace hydrascope
