// Maps and photographs as pixels, ready to be embedded.
#pragma once

#include "engine/figures/canvas.h"
#include "engine/figures/figure.h"

namespace hydrascope {

// The cells of a (rows, columns) map in its scale's colours, each repeated a whole number of times so that
// viewers which interpolate leave them crisp; NaN is transparent. `smooth`: values interpolated bilinearly
// between cells.
Pixels map_pixels(const Array& values, const Scale& scale, float opacity = 1, bool smooth = false);

// The picture with at most `most_pixels` on its longer side.
Pixels photograph_pixels(const Image& image, int most_pixels);

} // namespace hydrascope
