// Colours of what is no kernel: series, strategies, right and wrong.
#pragma once

#include <array>
#include <cstddef>

#include "engine/figures/colour_map.h"

namespace hydrascope::app {

// Okabe and Ito's palette, which the colour-blind can tell apart.
namespace category {
inline constexpr Colour blue{0, 0.447f, 0.698f, 1}, vermilion{0.835f, 0.369f, 0, 1},
    green{0, 0.620f, 0.451f, 1}, purple{0.800f, 0.475f, 0.655f, 1}, sky{0.337f, 0.706f, 0.914f, 1},
    orange{0.902f, 0.624f, 0, 1};
} // namespace category

// One after another, and then from the beginning.
inline Colour category_colour(std::size_t index) {
  constexpr std::array colours = {category::blue,   category::vermilion, category::green,
                                  category::purple, category::sky,       category::orange};
  return colours[index % colours.size()];
}

} // namespace hydrascope::app
