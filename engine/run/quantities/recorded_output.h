// How far softmax on a capture's q, k and v lies from the output that was recorded with them. Plain header.
#pragma once

#include <vector>

#include "engine/run/quantity.h"

namespace hydrascope {

struct RecordedOutputKey {
  // By layer the largest absolute difference over real queries; NaN for a layer without a recorded output.
  using Result = std::vector<double>;

  bool operator==(const RecordedOutputKey&) const = default;
};
const Quantity& quantity_of(const RecordedOutputKey& key);

} // namespace hydrascope
