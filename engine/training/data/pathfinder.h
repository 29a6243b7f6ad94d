// Pathfinder of the Long Range Arena (Linsley et al. 2018; Tay et al. 2021): grey pictures of two dots and
// several dashed paths; is there a path from one dot to the other? Plain header.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "engine/base/image.h"

namespace hydrascope::training {

inline constexpr std::array<std::string_view, 2> pathfinder_labels{"apart", "connected"};

struct PathfinderShape {
  int side = 32;       // pixels
  int dashes = 6;      // of each of the two long paths
  int distractors = 3; // short paths of a third of these dashes
};

// Whether the dots are the ends of one long path, or ends of both. Depends on `key` alone; white on black.
// Throws UsageError for a picture too small for such paths.
Image pathfinder_picture(const PathfinderShape& shape, bool connected, std::uint64_t key);

struct PathfinderFolders {
  std::filesystem::path training, validation, test; // with a sub-folder of PNG files for each label
};
// Folders below the cache folder, which are filled unless they are: as many pictures of each label. Throws
// Error (disk full), UsageError.
PathfinderFolders pathfinder_folders(const PathfinderShape& shape, int training, int validation, int test,
                                     std::uint64_t seed);

} // namespace hydrascope::training
