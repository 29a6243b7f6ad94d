#include "app/panels/weights/weights_toolbar.h"

#include <array>

#include "app/document/edits.h"
#include "app/panels/head_choice.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

// The first of the registry that is not among them.
KernelSpec next_kernel(const Document& document) {
  const auto count = static_cast<int>(document.scene().comparison.size());
  for (const KernelInfo& info : kernel_infos()) {
    bool there = false;
    for (int i = 0; i < count; ++i) there = there || compared_kernel(document, i).name == info.name;
    if (!there) return {.name = info.name, .parameters = {}};
  }
  return {};
}

} // namespace

void draw_weights_toolbar(Editor& editor, MapZoom& zoom) {
  const Document& document = editor.document();
  const ViewOptions& view = document.view;
  ImGui::AlignTextToFramePadding();
  if (!view.all_heads) {
    selected_head(editor);
    same_line_if_fits(134);
  }
  static constexpr std::array<const char*, 2> extents = {"one head", "all heads"};
  const int extent = segmented("extent", extents, view.all_heads ? 1 : 0);
  if (extent >= 0) change_view(editor, "One head or all", [&](ViewOptions& v) { v.all_heads = extent == 1; });
  same_line_if_fits(170);
  static constexpr std::array<const char*, 3> scales = {"linear", "log", "99 %"};
  const int scale = segmented("scale", scales, view.logarithmic ? 1 : view.percentile ? 2 : 0);
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("99 %%: the scale ends at the 99th percentile of the weights");
  if (scale >= 0) {
    change_view(editor, "Scale of the weights", [&](ViewOptions& v) {
      v.logarithmic = scale == 1;
      v.percentile = scale == 2;
    });
  }
  same_line_if_fits(110);
  static constexpr std::array<const char*, 2> ranges = {"own", "shared"};
  const int range = segmented("range", ranges, view.shared_scale ? 1 : 0);
  if (range >= 0)
    change_view(editor, "Own or shared scale", [&](ViewOptions& v) { v.shared_scale = range == 1; });
  same_line_if_fits(130);
  static constexpr std::array<const char*, 2> values = {"weight", "× value"};
  const int value = segmented("value", values, view.value_weighted ? 1 : 0);
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip(
        "× value: ‖α v W_o‖, the length of what a token adds through the head\n(Kobayashi et al. "
        "2020): a large weight on a short value moves little");
  if (value >= 0)
    change_view(editor, "Value-weighted weights", [&](ViewOptions& v) { v.value_weighted = value == 1; });
  same_line_if_fits(190);
  forced_choice(editor);
  if (view.all_heads) return;
  if (!shows_both(view)) { // of sides each shows its own
    same_line_if_fits(90);
    if (ImGui::Button("+ kernel")) add_compared_kernel(editor, next_kernel(document));
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Compare with one more kernel");
  }
  if (!(zoom == MapZoom{})) {
    ImGui::SameLine(0, 8);
    if (ImGui::Button("whole")) zoom = {};
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Show the whole matrix again (double-click)");
  }
}

} // namespace hydrascope::app
