// Where this checkout, what set-up fetched and the built program lie. Functions of one source file: paths in
// every test's command line would keep two checkouts from sharing what they compile.
#pragma once

#include <filesystem>

namespace hydrascope::test {

std::filesystem::path source_folder();
std::filesystem::path deps_folder();
std::filesystem::path program();

} // namespace hydrascope::test
