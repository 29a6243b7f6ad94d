// Unicode's canonical decomposition and order (UAX #15), in a time of n log n for n marks on one letter:
// utf8proc's own order takes n².
#pragma once

#include <vector>

namespace hydrascope {

// Appends the decomposition of one character, its marks in no particular order.
void append_decomposed(std::vector<char32_t>& points, char32_t point);
// Puts each run of combining marks into the order of their classes; marks of one class stay in theirs.
void order_marks(std::vector<char32_t>& points);

} // namespace hydrascope
