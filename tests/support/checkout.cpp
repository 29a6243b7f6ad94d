#include "tests/support/checkout.h"

namespace hydrascope::test {

std::filesystem::path source_folder() { return HYDRASCOPE_SOURCE_DIR; }
std::filesystem::path deps_folder() { return HYDRASCOPE_DEPS_DIR; }
std::filesystem::path program() { return HYDRASCOPE_PROGRAM; }

} // namespace hydrascope::test
