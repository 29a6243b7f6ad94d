#include "app/views/share_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/figures/scale.h"

namespace hydrascope::app {

Share share_of(const std::vector<Prediction>& predictions, const int index) {
  const auto found = std::ranges::find(predictions, index, &Prediction::index);
  if (found != predictions.end()) return {.value = found->probability};
  return {.below = predictions.empty() ? 0 : predictions.back().probability};
}

std::string share_text(const Share& share) {
  constexpr double least = 0.0005;
  if (share.below > 0) return fmt::format("< {:.1f} %", std::max(0.1, std::ceil(share.below * 1000) / 10));
  return share.value > 0 && share.value < least ? "< 0.1 %" : fmt::format("{:.1f} %", share.value * 100);
}

std::string exact_share_text(const Share& share) {
  return share.below > 0 ? "less than " + percent_text(share.below) : percent_text(share.value);
}

} // namespace hydrascope::app
