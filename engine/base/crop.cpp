#include "engine/base/crop.h"

#include <algorithm>
#include <cstddef>

namespace hydrascope {

Image crop(const Image& image, const int left, const int top, const int width, const int height) {
  Image result{width, height, {}};
  result.rgb.assign(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 0);
  const int first = std::max(0, -left);
  const int last = std::min(width, image.width - left);
  for (int y = std::max(0, -top); y < std::min(height, image.height - top) && first < last; ++y) {
    const auto from = image.rgb.begin() + 3 * (std::ptrdiff_t{y + top} * image.width + left + first);
    std::copy_n(from, 3 * (last - first), result.rgb.begin() + 3 * (std::ptrdiff_t{y} * width + first));
  }
  return result;
}

} // namespace hydrascope
