// The pointing game (Zhang et al. 2016, "Top-down neural attention by excitation backprop", section 4.1): a
// map is right where its maximum lies in the object's box. Plain header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace hydrascope {

// A box in a picture's pixels, the first and the last included.
struct PixelBox {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;

  bool operator==(const PixelBox&) const = default;
};

// rows × columns patches over the part of a picture that the crop leaves, in the picture's pixels.
struct PatchGrid {
  std::int64_t rows = 0, columns = 0;
  double x = 0, y = 0, width = 0, height = 0;
};

// The patch with the largest value, the first of equal ones; nullopt for an empty map, without a positive
// value.
std::optional<std::size_t> maximum_patch(std::span<const float> map);

// Whether the pixel at the centre of a patch (row by row) lies in one of the boxes.
bool points_into(const PatchGrid& grid, std::size_t patch, std::span<const PixelBox> boxes);
// Whether the pixel at the centre of the grid does: the baseline of a map that ignores the picture.
bool centre_points_into(const PatchGrid& grid, std::span<const PixelBox> boxes);
// The share of the patches that point into one of the boxes: the baseline of a random patch.
double chance_to_point_into(const PatchGrid& grid, std::span<const PixelBox> boxes);

} // namespace hydrascope
