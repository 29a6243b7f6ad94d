// Random augmentation of training pictures by DeiT's recipe (Touvron et al. 2021, table 9), with crops and
// colours as torchvision's RandomResizedCrop and ColorJitter. Plain header.
#pragma once

#include <cstdint>

#include "engine/base/image.h"

namespace hydrascope::training {

struct Augmentation {
  double smallest_crop = 0.35; // least share of the picture's area in a crop; 1: only the shape varies
  double color_jitter = 0.3;   // brightness, contrast and saturation change by up to this share
  bool flip = true;            // mirrored with a probability of one half

  bool operator==(const Augmentation&) const = default;
};

// A function of its arguments alone. Copy 0 is the picture itself; every other copy is a random crop with an
// aspect ratio from 3:4 to 4:3, resized to a square of `side` pixels, perhaps mirrored, with changed colours.
Image augmented_copy(const Image& image, int copy, int side, const Augmentation& augmentation,
                     std::uint64_t key);

} // namespace hydrascope::training
