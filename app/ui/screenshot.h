// Pictures of the window as files.
#pragma once

#include <array>
#include <filesystem>

#include "engine/base/image.h"

namespace hydrascope::app {

// The part of a picture that starts at x, y, as far as it lies inside.
Image cut_out(const Image& image, const std::array<int, 4>& rectangle); // x, y, width, height
// Throws Error.
void write_png(const std::filesystem::path& file, const Image& image);

} // namespace hydrascope::app
