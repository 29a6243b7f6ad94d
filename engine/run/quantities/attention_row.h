// One row of the explicit weights of a layer's own kernel, for every head. Plain header.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/array.h"
#include "engine/run/quantities/last_token.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct AttentionRowResult;

struct AttentionRowKey {
  using Result = AttentionRowResult;

  int layer = 0;
  std::optional<std::int64_t> query = {}; // or last_token; nullopt: the mean of the rows of all real tokens

  bool operator==(const AttentionRowKey&) const = default;
};
struct AttentionRowResult {
  AttentionRowKey key;
  bool derived_signed = false; // as WeightsResult
  Array weights;               // (h,N)
};
const Quantity& quantity_of(const AttentionRowKey& key);

} // namespace hydrascope
