// A rectangle out of a picture.
#pragma once

#include "engine/base/image.h"

namespace hydrascope {

// width × height pixels from (left, top) on; black where the rectangle reaches beyond the picture.
Image crop(const Image& image, int left, int top, int width, int height);

} // namespace hydrascope
