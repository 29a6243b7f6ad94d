// Random versions of training pictures as DeiT's recipe makes them (Touvron et al. 2021, table 9; crops and
// colours as torchvision's RandomResizedCrop and ColorJitter): what a picture becomes is a function of its
// arguments alone.
#pragma once

#include <cstdint>

#include "engine/base/image.h"

namespace hydrascope::training {

struct Augmentation {
  double smallest_crop =
      0.35; // share of the picture's area that a crop keeps at least; 1: only the shape varies
  double color_jitter = 0.3; // brightness, contrast and saturation change by up to this share
  bool flip = true;          // every other one, by chance, is mirrored

  bool operator==(const Augmentation&) const = default;
};

// Copy 0 is the picture itself. Every other copy is a random crop, 3:4 to 4:3 in shape, stretched to a square
// of `side` pixels, perhaps mirrored, with its colours changed.
Image augmented_copy(const Image& image, int copy, int side, const Augmentation& augmentation,
                     std::uint64_t key);

} // namespace hydrascope::training
