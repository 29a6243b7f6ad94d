#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/run/quantities/head_reader.h"

// The quantities of heads in the order in which people see them: one line each, defined in the file of its
// name.
#define HYDRASCOPE_HEAD_QUANTITIES(QUANTITY) \
  QUANTITY(entropy_quantity)                 \
  QUANTITY(kl_quantity)                      \
  QUANTITY(monotonicity_quantity)            \
  QUANTITY(output_change_quantity)           \
  QUANTITY(attention_distance_quantity)      \
  QUANTITY(first_token_share_quantity)

namespace hydrascope {

#define HYDRASCOPE_DECLARE(function) HeadQuantity function();
HYDRASCOPE_HEAD_QUANTITIES(HYDRASCOPE_DECLARE)
#undef HYDRASCOPE_DECLARE

const std::vector<HeadQuantity>& head_quantities() {
#define HYDRASCOPE_ENTRY(function) function(),
  static const std::vector<HeadQuantity> quantities = {HYDRASCOPE_HEAD_QUANTITIES(HYDRASCOPE_ENTRY)};
#undef HYDRASCOPE_ENTRY
  return quantities;
}

const HeadQuantity& head_quantity(std::string_view name) {
  const auto found = std::ranges::find_if(
      head_quantities(), [&](const HeadQuantity& quantity) { return quantity.info.name == name; });
  if (found != head_quantities().end()) return *found;
  std::vector<std::string> known;
  for (const HeadQuantity& quantity : head_quantities()) known.push_back(quantity.info.name);
  throw UsageError(std::string(name), "no such number of heads is known",
                   fmt::format("known are {}", fmt::join(known, ", ")));
}

const std::vector<HeadQuantityInfo>& head_quantity_infos() {
  static const std::vector<HeadQuantityInfo> infos = [] {
    std::vector<HeadQuantityInfo> all;
    std::ranges::transform(head_quantities(), std::back_inserter(all), &HeadQuantity::info);
    return all;
  }();
  return infos;
}

const HeadQuantityInfo& head_quantity_info(std::string_view name) { return head_quantity(name).info; }

} // namespace hydrascope
