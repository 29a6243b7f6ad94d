// What there is to start with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hydrascope::app {

// The example pictures that set-up has put in place, sorted by name; empty if there are none.
std::vector<std::filesystem::path> example_pictures();
// Sentences to start with.
const std::vector<std::string>& example_sentences();

} // namespace hydrascope::app
