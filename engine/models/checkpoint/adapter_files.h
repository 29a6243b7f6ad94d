// The files of adapters in a folder. Plain header.
#pragma once

#include <filesystem>
#include <vector>

namespace hydrascope {

// Every *.safetensors of a folder, sorted by name; none if there is no such folder.
std::vector<std::filesystem::path> safetensors_in(const std::filesystem::path& folder);
// The same of FOLDER/adapters/, where those of a model lie that come with it.
std::vector<std::filesystem::path> adapters_in(const std::filesystem::path& folder);

} // namespace hydrascope
