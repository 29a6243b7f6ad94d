// Resizing 8-bit pictures as Pillow does, to the last bit: Hugging Face's image processors are defined by it.
// Source: Pillow's src/libImaging/Resample.c (a horizontal pass, then a vertical one; 22-bit fixed-point
// weights; each pass rounded to 8 bits).
#pragma once

#include "engine/base/image.h"

namespace hydrascope {

// The numbers are PIL's `resample` codes.
enum class Filter { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };

// Antialiased resize to width × height (both positive); `nearest` picks pixels.
Image resample(const Image& image, int width, int height, Filter filter);

} // namespace hydrascope
