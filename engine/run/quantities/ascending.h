// Rows of weights in ascending order, each entry with the key it belongs to.
#pragma once

#include <cstdint>
#include <vector>

namespace hydrascope {

template <typename Number>
struct Entry {
  Number value;
  std::int32_t key;
};

// Sorts by value; −0 and +0 are equal. No value may be NaN. `spare` is room for the work, kept between calls.
void sort_ascending(std::vector<Entry<float>>& entries, std::vector<Entry<float>>& spare);
void sort_ascending(std::vector<Entry<double>>& entries, std::vector<Entry<double>>& spare);

} // namespace hydrascope
