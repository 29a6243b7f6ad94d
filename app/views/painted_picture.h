// The photograph under a map, with what was hidden of it. Plain header.
#pragma once

#include <memory>
#include <vector>

#include "engine/run/run.h"

namespace hydrascope::app {

// The photograph as the model was shown it: hidden patches painted over.
class PaintedPicture {
public:
  PaintedPicture() = default;
  PaintedPicture(const ImageInput& image, const RunResult& run);
  const ImageInput& picture() const { return painted_; }
  // Whether this is what it would be made of again.
  bool shows(const ImageInput& image, const RunResult& run) const;

private:
  std::shared_ptr<const Image> original_;
  ImageInput painted_;
  std::vector<std::int64_t> hidden_;
  int rows_ = 0, columns_ = 0;
};

} // namespace hydrascope::app
