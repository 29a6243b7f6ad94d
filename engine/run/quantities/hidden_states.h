// What the model takes and gives, as tensors. Plain header.
#pragma once

#include <vector>

#include "engine/base/array.h"
#include "engine/run/quantity.h"

namespace hydrascope {

// The picture as the model takes it, (1,3,H,W).
struct PixelsKey {
  using Result = Array;
  bool operator==(const PixelsKey&) const = default;
};
const Quantity& quantity_of(const PixelsKey& key);

// What enters the first layer and what each layer gives: 0…L, (1,N,D).
struct HiddenStatesKey {
  using Result = std::vector<Array>;
  bool operator==(const HiddenStatesKey&) const = default;
};
const Quantity& quantity_of(const HiddenStatesKey& key);

// A classifier's (1,C), or a masked-LM head's (1,N,V); without a head no result.
struct LogitsKey {
  using Result = Array;
  bool operator==(const LogitsKey&) const = default;
};
const Quantity& quantity_of(const LogitsKey& key);

} // namespace hydrascope
