#include "app/state/results.h"

#include <ranges>

namespace hydrascope::app {

FoundFocus find_focus(const SideResults& results, int layer) {
  for (const auto& part : results.parts | std::views::reverse) {
    for (const FocusResult& focus : part->focus) {
      if (focus.layer == layer) return {part.get(), &focus};
    }
  }
  return {};
}

FoundWeights find_weights(const SideResults& results, int layer, const KernelSpec& kernel,
                          bool teacher_forced) {
  for (const auto& part : results.parts | std::views::reverse) {
    for (const WeightsResult& weights : part->weights) {
      if (weights.layer == layer && weights.kernel == kernel && weights.teacher_forced == teacher_forced) {
        return {part.get(), &weights};
      }
    }
  }
  return {};
}

FoundTable find_table(const SideResults& results, const std::string& name, const KernelSpec* kernel) {
  for (const auto& part : results.parts | std::views::reverse) {
    for (const HeadTable& table : part->tables) {
      if (table.name != name || table.in_place != (kernel == nullptr)) continue;
      if (kernel == nullptr || table.kernel == *kernel) return {part.get(), &table};
    }
  }
  return {};
}

} // namespace hydrascope::app
