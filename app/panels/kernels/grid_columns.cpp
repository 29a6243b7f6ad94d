#include "app/panels/kernels/grid_columns.h"

#include <algorithm>

#include "engine/base/text.h"

namespace hydrascope::app {

namespace {

bool is_found(const KernelInfo& info, const std::string& text) {
  return contains_any_case(info.name, text) || contains_any_case(family_name(info.family), text);
}

} // namespace

void GridColumns::toggle(KernelFamily family, bool open_now) {
  chosen_ = true;
  if (open_now) {
    folded_.insert(family);
    return;
  }
  folded_.erase(family);
  const auto found = std::ranges::find(order_, family);
  std::rotate(order_.begin(), found, found + 1);
}

void GridColumns::prefer(KernelFamily family) {
  if (chosen_) return;
  const auto found = std::ranges::find(order_, family);
  if (found != order_.begin()) std::rotate(order_.begin() + 1, found, found + 1);
}

std::vector<GridColumns::Family> GridColumns::place(float room,
                                                    const std::array<float, kernel_families>& labels) const {
  std::vector<Family> families;
  for (int index = 0; index < kernel_families; ++index) {
    Family family{.family = static_cast<KernelFamily>(index), .kernels = {}};
    for (std::size_t kernel = 0; kernel < kernel_infos().size(); ++kernel) {
      const KernelInfo& info = kernel_infos()[kernel];
      if (info.family == family.family && is_found(info, text_)) family.kernels.push_back(kernel);
    }
    if (!family.kernels.empty()) families.push_back(std::move(family));
  }
  const auto open_width = [&](const Family& family, float column) {
    return std::max(column * static_cast<float>(family.kernels.size()),
                    labels[static_cast<std::size_t>(family.family)]);
  };
  float total = folded_width * static_cast<float>(families.size());
  bool any_open = false;
  for (const KernelFamily next : order_) {
    const auto family = std::ranges::find(families, next, &Family::family);
    if (family == families.end() || (text_.empty() && folded_.contains(next))) continue;
    const float more = open_width(*family, least_column) - folded_width;
    if (text_.empty() && any_open && total + more > room) continue;
    family->open = any_open = true;
    total += more;
  }
  // The widest columns that fit.
  float column = most_column;
  const auto width_with = [&](float each) {
    float width = 0;
    for (const Family& family : families) width += family.open ? open_width(family, each) : folded_width;
    return width;
  };
  while (column > least_column && width_with(column) > room) column -= 0.5f;
  float x = 0;
  for (Family& family : families) {
    family.x = x;
    family.width = family.open ? open_width(family, column) : folded_width;
    family.column = family.open ? family.width / static_cast<float>(family.kernels.size()) : folded_width;
    x += family.width;
  }
  return families;
}

float GridColumns::width_of(const std::vector<Family>& families) {
  return families.empty() ? 0 : families.back().x + families.back().width;
}

} // namespace hydrascope::app
