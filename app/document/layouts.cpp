#include "app/document/layouts.h"

#include <algorithm>
#include <utility>

namespace hydrascope::app {

const std::vector<LayoutInfo>& layout_infos() {
  static const std::vector<LayoutInfo> infos = {
      {.id = "explore", .title = "Explore", .shortcut = "Alt+1", .open = {}},
      {.id = "compare",
       .title = "Compare",
       .shortcut = "Alt+2",
       .open = {"kernels", "focus", "weights", "predictions", "layers", "entropy", "kl"}},
      {.id = "text",
       .title = "Text",
       .shortcut = "Alt+3",
       .open = {"input", "kernels", "focus", "loss", "write", "tokens", "weights", "layers", "predictions"}},
      {.id = "measure",
       .title = "Measure",
       .shortcut = "Alt+4",
       .open = {"kernels", "timing", "scaling", "roofline", "entropy", "kl", "monotonicity", "predictions"}},
      {.id = "train",
       .title = "Train",
       .shortcut = "Alt+5",
       .open = {"kernels", "training", "weights", "focus", "tokens", "kl", "entropy", "predictions"}},
  };
  return infos;
}

std::set<std::string> closed_in_layout(std::string_view layout, const std::vector<PanelName>& panels,
                                       const Settings& settings) {
  if (layout.starts_with(own_layout_prefix)) {
    const SavedLayout* own = find_layout(settings, layout.substr(own_layout_prefix.size()));
    if (own == nullptr) return {};
    return {own->closed.begin(), own->closed.end()};
  }
  const auto info = std::ranges::find(layout_infos(), layout, &LayoutInfo::id);
  std::set<std::string> closed;
  if (info == layout_infos().end() || info->open.empty()) return closed;
  for (const PanelName& panel : panels) {
    if (std::ranges::find(info->open, panel.id) == info->open.end()) closed.insert(panel.id);
  }
  return closed;
}

void choose_layout(Editor& editor, const std::string& layout, std::set<std::string> closed) {
  const auto info = std::ranges::find(layout_infos(), layout, &LayoutInfo::id);
  std::string name = info == layout_infos().end() ? layout : info->title;
  if (name.starts_with(own_layout_prefix)) name.erase(0, own_layout_prefix.size());
  editor.change("Layout " + name, [&](Document& document) {
    document.layout = layout;
    document.closed_panels = std::move(closed);
    const bool compares = layout == "compare";
    if (compares) document.view.shown = Shown::all;
    if (!compares && document.view.shown == Shown::all) document.view.shown = Shown::a;
  });
}

} // namespace hydrascope::app
