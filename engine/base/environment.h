// What the process was started with.
#pragma once

#include <string>

namespace hydrascope {

std::string environment(const char* name); // "" if it is not set

} // namespace hydrascope
