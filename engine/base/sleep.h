#pragma once

#include <chrono>
#include <stop_token>

namespace hydrascope {

// Returns after `duration`, or at once when a stop is requested.
void sleep_for(std::chrono::milliseconds duration, const std::stop_token& stop);

} // namespace hydrascope
