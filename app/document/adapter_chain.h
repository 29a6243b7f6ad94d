// An adapter with those that it was trained over.
#pragma once

#include <filesystem>
#include <vector>

namespace hydrascope::app {

// The file, after the adapters that it stands on one upon the other: bundled ones, or some of `others`. In
// order of application. Throws as read_adapter_info.
std::vector<std::filesystem::path> adapter_chain(const std::filesystem::path& file,
                                                 const std::vector<std::filesystem::path>& others = {});

} // namespace hydrascope::app
