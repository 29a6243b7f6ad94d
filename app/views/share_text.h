// Probabilities of a list of predictions as text. Plain header.
#pragma once

#include <string>
#include <vector>

#include "engine/run/run.h"

namespace hydrascope::app {

// A probability. A decoder's run lists the likeliest tokens alone: of another one it is known that it is
// below the last of them.
struct Share {
  double value = 0;
  double below = 0; // > 0: not listed
};

Share share_of(const std::vector<Prediction>& predictions, int index);
// With one decimal, for a column: "36.6 %", and "< 0.1 %" for what that would round to 0.
std::string share_text(const Share& share);
// As percent_text(): "36.6 %", "less than 0.12 %".
std::string exact_share_text(const Share& share);

} // namespace hydrascope::app
