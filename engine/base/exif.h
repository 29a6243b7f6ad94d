// The one thing of a photograph's EXIF block that matters here: which way up it is.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/image.h"

namespace hydrascope {

// The orientation (1…8) of a JPEG's EXIF block; 1 (upright) where there is none or it cannot be read.
int exif_orientation(std::span<const std::uint8_t> file);

// The picture turned and mirrored so that it is upright. `orientation` outside 2…8 leaves it as it is.
Image upright(const Image& image, int orientation);

} // namespace hydrascope
