#include "app/views/painted_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hydrascope::app {

PaintedPicture::PaintedPicture(const ImageInput& image, const RunResult& run)
    : original_(image.image),
      painted_(image),
      hidden_(run.hidden_tokens),
      rows_(run.rows),
      columns_(run.columns) {
  if (hidden_.empty() || !original_ || rows_ < 1 || columns_ < 1) return;
  Image copy = *original_;
  // ImageNet's mean; a model that was normalised by another one saw a grey close to it.
  constexpr std::array<std::uint8_t, 3> mean = {124, 116, 104};
  const auto pixel = [](double position, int limit) {
    return std::clamp(static_cast<int>(std::lround(position)), 0, limit);
  };
  for (const std::int64_t token : hidden_) {
    const auto patch = static_cast<int>(token) - run.prefix_tokens;
    const double height = run.crop_height / rows_, width = run.crop_width / columns_;
    const int row = patch / columns_, column = patch % columns_;
    const int top = pixel(run.crop_y + row * height, copy.height);
    const int bottom = pixel(run.crop_y + (row + 1) * height, copy.height);
    const int left = pixel(run.crop_x + column * width, copy.width);
    const int right = pixel(run.crop_x + (column + 1) * width, copy.width);
    for (int y = top; y < bottom; ++y) {
      for (int x = left; x < right; ++x) {
        const auto at = (static_cast<std::size_t>(y) * static_cast<std::size_t>(copy.width) +
                         static_cast<std::size_t>(x)) *
                        3;
        std::ranges::copy(mean, copy.rgb.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
  painted_.image = std::make_shared<const Image>(std::move(copy));
}

bool PaintedPicture::shows(const ImageInput& image, const RunResult& run) const {
  return original_ != nullptr && image.image == original_ && image.name == painted_.name &&
         run.hidden_tokens == hidden_ && run.rows == rows_ && run.columns == columns_;
}

} // namespace hydrascope::app
