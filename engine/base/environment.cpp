#include "engine/base/environment.h"

#include <cstdlib>

namespace hydrascope {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

} // namespace hydrascope
