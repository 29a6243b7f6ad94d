// A layer's weights at the resolution of the screen. Plain header.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/attention/interface/kernel_info.h"
#include "engine/base/array.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct TileResult;

// A part of the weights of one layer, pooled to the pixels that show it.
struct TileKey {
  using Result = TileResult;

  int layer = 0;
  KernelSpec kernel;
  bool teacher_forced = false;
  std::vector<int> heads;                                                        // empty: all
  std::optional<HeadFusion> fusion;                                              // nullopt: one map per head
  std::int64_t first_row = 0, row_count = 0, first_column = 0, column_count = 0; // count 0: up to the end
  std::int64_t rows = 0, columns = 0; // cells of the result, at most one per weight
  bool value_weighted = false;        // as WeightsKey

  bool operator==(const TileKey&) const = default;
};
const Quantity& quantity_of(const TileKey& key);

struct TileResult {
  TileKey key;
  std::int64_t tokens = 0;     // N
  bool derived_signed = false; // as WeightsResult
  bool untrained = false;
  Array values; // (h,rows,columns), fused (1,rows,columns): the weight of largest absolute value in each cell
};

} // namespace hydrascope
