#include "app/panels/weights/weights_toolbar.h"

#include <array>
#include <string>
#include <vector>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

void extent_choice(Editor& editor) {
  static constexpr std::array<const char*, 2> extents = {"one head", "all heads"};
  const int extent = segmented("extent", extents, editor.document().view.all_heads ? 1 : 0);
  if (extent >= 0) change_view(editor, "One head or all", [&](ViewOptions& v) { v.all_heads = extent == 1; });
}

void add_kernel_button(Editor& editor) {
  if (ImGui::Button("Add kernel…###add_kernel")) ImGui::OpenPopup("kernels");
  if (ImGui::IsItemHovered()) text_tooltip("Choose one more kernel to compare");
  ImGui::SetNextWindowSizeConstraints({240, 0}, {360, 420});
  if (!ImGui::BeginPopup("kernels")) return;
  list_search(editor.list_search());
  std::vector<std::string> shown;
  for (int i = 0; i < static_cast<int>(editor.document().scene().comparison.size()); ++i)
    shown.push_back(compared_kernel(editor.document(), i).label());
  const int picked = kernel_list("", editor.list_search(), shown);
  if (picked >= 0) {
    add_compared_kernel(
        editor, KernelSpec{.name = kernel_infos()[static_cast<std::size_t>(picked)].name, .parameters = {}});
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndPopup();
}

void colours_choice(Editor& editor) {
  const ViewOptions& view = editor.document().view;
  static constexpr std::array<const char*, 3> scales = {"linear", "log", "clip at 99 %"};
  const int scale = segmented("scale", scales, view.logarithmic ? 1 : view.percentile ? 2 : 0);
  if (ImGui::IsItemHovered())
    text_tooltip(
        "Choose how colours follow the weights.\nclip at 99 %: the scale ends at their 99th percentile");
  if (scale < 0) return;
  change_view(editor, "Scale of the weights", [&](ViewOptions& v) {
    v.logarithmic = scale == 1;
    v.percentile = scale == 2;
  });
}

void range_choice(Editor& editor, const char* why_not) {
  static constexpr std::array<const char*, 2> ranges = {"own scale", "shared scale"};
  const bool shared = editor.document().view.shared_scale && *why_not == '\0';
  const int range = segmented("range", ranges, shared ? 1 : 0, std::array<const char*, 2>{"", why_not});
  if (ImGui::IsItemHovered() && *why_not == '\0')
    text_tooltip(
        "Choose whether each map's colours end at its own largest weight, or all at the largest of all;\n"
        "signed weights keep a scale of their own");
  if (range >= 0)
    change_view(editor, "Own or shared scale", [&](ViewOptions& v) { v.shared_scale = range == 1; });
}

void value_choice(Editor& editor) {
  static constexpr std::array<const char*, 2> values = {"weight", "value-weighted"};
  const int value = segmented("value", values, editor.document().view.value_weighted ? 1 : 0);
  if (ImGui::IsItemHovered())
    text_tooltip(
        "Choose the number of a pair of tokens.\nvalue-weighted: ‖α v W_o‖, the length of what a token adds "
        "through the head\n(Kobayashi et al. 2020): a large weight on a short value moves little");
  if (value >= 0)
    change_view(editor, "Value-weighted weights", [&](ViewOptions& v) { v.value_weighted = value == 1; });
}

} // namespace

void draw_weights_toolbar(Editor& editor, MapZoom& zoom, const char* why_own) {
  const ViewOptions& view = editor.document().view;
  Toolbar bar;
  if (!view.all_heads) bar.add(196, [&] { selected_head(editor); });
  bar.add(134, [&] { extent_choice(editor); });
  // Of both sides each shows its own kernel.
  if (!view.all_heads && !shows_both(view)) bar.add(106, [&] { add_kernel_button(editor); });
  if (!view.all_heads && !(zoom == MapZoom{})) {
    bar.add(94, [&] {
      if (ImGui::Button("Whole matrix###whole")) zoom = {};
      if (ImGui::IsItemHovered()) text_tooltip("Show the whole matrix again (double-click)");
    });
  }
  bar.add(162, [&] { colours_choice(editor); });
  bar.add(172, [&] { range_choice(editor, why_own); });
  bar.add(170, [&] { value_choice(editor); });
  bar.add(164, [&] { forced_choice(editor); });
  bar.draw();
}

} // namespace hydrascope::app
