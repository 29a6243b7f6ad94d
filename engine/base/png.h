// Pictures as the bytes of PNG files.
#pragma once

#include <string>

#include "engine/base/image.h"

namespace hydrascope {

std::string png_of(const Image& image);

} // namespace hydrascope
