// Maps and photographs as pixels, ready to be embedded.
#pragma once

#include "engine/figures/canvas.h"
#include "engine/figures/figure.h"

namespace hydrascope {

// The cells of a (rows, columns) map in its scale's colours, each repeated a whole number of times so that
// viewers which interpolate leave them crisp, or values between them; NaN is transparent. As the window's
// shader colours it (shaders/colour_map.frag).
Pixels map_pixels(const Array& values, const Scale& scale, float opacity = 1,
                  Interpolation interpolation = Interpolation::nearest);

// The picture with at most `most_pixels` on its longer side.
Pixels photograph_pixels(const Image& image, int most_pixels);

} // namespace hydrascope
