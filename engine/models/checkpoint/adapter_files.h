// Adapters that lie in a model's own folder. Plain header.
#pragma once

#include <filesystem>
#include <vector>

namespace hydrascope {

// Every *.safetensors of FOLDER/adapters/, sorted by name; none if there is no such folder.
std::vector<std::filesystem::path> adapters_in(const std::filesystem::path& folder);

} // namespace hydrascope
