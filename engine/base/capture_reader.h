// What the files of a capture hold (docs/captures.md has the format).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/capture.h"

namespace hydrascope {

// Index and name of a tensor layers.INDEX.NAME.
std::optional<std::pair<std::int64_t, std::string_view>> layer_tensor(std::string_view name);

struct CaptureContent {
  std::vector<CaptureLayer> layers;
  std::vector<CaptureTokens> tokens; // pictures as the file names them
  std::string source;
};
// Of the files that hold one capture together, `path`. The views are of the files. Throws BrokenFile.
CaptureContent read_capture(const std::filesystem::path& path, const std::vector<SafetensorsFile>& files);

} // namespace hydrascope
