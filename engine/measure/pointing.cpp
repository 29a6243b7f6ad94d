#include "engine/measure/pointing.h"

#include <algorithm>
#include <cmath>

namespace hydrascope {
namespace {

bool lies_in(const double x, const double y, const std::span<const PixelBox> boxes) {
  const double column = std::floor(x), row = std::floor(y); // of the pixel that covers the point
  return std::ranges::any_of(boxes, [&](const PixelBox& box) {
    return box.x0 <= column && column <= box.x1 && box.y0 <= row && row <= box.y1;
  });
}

} // namespace

std::optional<std::size_t> maximum_patch(const std::span<const float> map) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < map.size(); ++i)
    if (map[i] > (best ? map[*best] : 0.0F)) best = i;
  return best;
}

bool points_into(const PatchGrid& grid, const std::size_t patch, const std::span<const PixelBox> boxes) {
  const auto columns = static_cast<std::size_t>(grid.columns);
  const std::size_t row = patch / columns, column = patch % columns;
  const double width = grid.width / static_cast<double>(grid.columns);
  const double height = grid.height / static_cast<double>(grid.rows);
  return lies_in(grid.x + (static_cast<double>(column) + 0.5) * width,
                 grid.y + (static_cast<double>(row) + 0.5) * height, boxes);
}

bool centre_points_into(const PatchGrid& grid, const std::span<const PixelBox> boxes) {
  return lies_in(grid.x + grid.width / 2, grid.y + grid.height / 2, boxes);
}

double chance_to_point_into(const PatchGrid& grid, const std::span<const PixelBox> boxes) {
  const auto patches = static_cast<std::size_t>(grid.rows * grid.columns);
  std::size_t inside = 0;
  for (std::size_t patch = 0; patch < patches; ++patch) inside += points_into(grid, patch, boxes) ? 1 : 0;
  return patches > 0 ? static_cast<double>(inside) / static_cast<double>(patches) : 0.0;
}

} // namespace hydrascope
