#include "app/panels/focus/focus_toolbar.h"

#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "app/document/edits.h"
#include "app/panels/head_choice.h"
#include "app/panels/query_choice.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float spacing = 16;
constexpr float interpolation_width = 184;

void map_switches(Editor& editor) {
  static constexpr std::array<const char*, map_kinds> labels = {"focus", "attention", "rollout"};
  static constexpr std::array<const char*, map_kinds> meanings = {
      "what each token contributes to the target",
      "the query's weights in the layer; a weight is not an explanation",
      "the weights of all layers multiplied (Abnar & Zuidema 2020); a weight is not an explanation"};
  std::array<bool, map_kinds> on{};
  for (const MapKind kind : editor.document().view.maps) on[static_cast<std::size_t>(kind)] = true;
  const int clicked = switches("maps", labels, on, meanings);
  if (clicked >= 0) toggle_map(editor, static_cast<MapKind>(clicked));
}

void interpolation_combo(Editor& editor) {
  static constexpr std::array<const char*, 3> labels = {"nearest", "bilinear", "bicubic (Catmull-Rom)"};
  static constexpr std::array<const char*, 3> meanings = {
      "every patch in its own colour", "straight lines between the centres of patches",
      "smooth curves through the centres of patches; between them a curve may rise\n"
      "above its neighbours, which the colour scale cuts off"};
  const auto chosen = static_cast<std::size_t>(editor.document().view.interpolation);
  ImGui::SetNextItemWidth(interpolation_width);
  if (!ImGui::BeginCombo("##interpolation", labels[chosen])) return;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (ImGui::Selectable(labels[i], i == chosen))
      change_view(editor, "Interpolation",
                  [&](ViewOptions& view) { view.interpolation = static_cast<Interpolation>(i); });
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", meanings[i]);
  }
  ImGui::EndCombo();
}

// A share of one in percent; one drag is one step.
void percent_slider(Editor& editor, const char* label, const std::string& change, int most, double share,
                    const std::function<void(ViewOptions&, double)>& set) {
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "%s", label);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(96);
  int percent = static_cast<int>(std::lround(share * 100));
  if (ImGui::SliderInt(("##" + change).c_str(), &percent, 0, most, "%d %%", ImGuiSliderFlags_AlwaysClamp))
    change_view(
        editor, change, [&](ViewOptions& view) { set(view, percent / 100.0); }, change);
}

void target_combo(Editor& editor, const RunResult& run, float width) {
  ImGui::SetNextItemWidth(width);
  const Target& target = editor.document().scene().target;
  const bool predicted = target.kind == Target::Kind::predicted;
  const std::string preview = fitted(predicted ? "predicted class" : run.target, width - 32);
  if (!ImGui::BeginCombo("##target", preview.c_str(), ImGuiComboFlags_HeightLarge)) return;
  if (ImGui::Selectable("predicted class", predicted)) select_target(editor, {});
  for (const Prediction& prediction : run.predictions) {
    const bool on = target.kind == Target::Kind::class_index && target.index == prediction.index;
    ImGui::PushID(prediction.index);
    if (ImGui::Selectable(prediction.label.c_str(), on))
      select_target(editor, {.kind = Target::Kind::class_index, .index = prediction.index, .text = {}});
    ImGui::PopID();
  }
  ImGui::EndCombo();
}

} // namespace

void draw_focus_toolbar(Editor& editor, const RunResult* run) {
  const Document& document = editor.document();
  const ViewOptions& view = document.view;
  static const std::array<const char*, 4> sides = {side_name(Shown::a), side_name(Shown::b),
                                                   side_name(Shown::difference), "all three"};
  const int side = segmented("side", sides, static_cast<int>(view.shown));
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip(
        "A and B are two schedules of kernels on the same input: A is the one you start with, B is softmax "
        "in\n"
        "every layer. Where B alone is shown, Model and kernels changes B.");
  if (side >= 0)
    change_view(editor, "Choose side", [&](ViewOptions& v) { v.shown = static_cast<Shown>(side); });
  same_line_if_fits(190, spacing);
  map_switches(editor);
  same_line_if_fits(130, spacing);
  static constexpr std::array<const char*, 2> signs = {"positive", "signed"};
  const int sign = segmented("sign", signs, view.with_sign ? 1 : 0);
  if (sign >= 0) change_view(editor, "Signed map", [&](ViewOptions& v) { v.with_sign = sign == 1; });
  same_line_if_fits(190, spacing);
  query_combo(editor, run, 190);
  if (run != nullptr && !run->predictions.empty()) {
    same_line_if_fits(150, spacing);
    target_combo(editor, *run, 150);
  }
  if (document.kind == InputKind::image) {
    same_line_if_fits(interpolation_width, spacing);
    interpolation_combo(editor);
    same_line_if_fits(160, spacing);
    percent_slider(editor, "opacity", "Opacity", 100, static_cast<double>(view.opacity),
                   [](ViewOptions& v, double share) { v.opacity = static_cast<float>(share); });
  }
  if (view.maps == std::set{MapKind::focus}) return;
  same_line_if_fits(130, spacing);
  head_combo(editor, 130);
  if (!view.maps.contains(MapKind::rollout)) return;
  same_line_if_fits(160, spacing);
  percent_slider(editor, "discard", "Discard ratio", 95, view.discard,
                 [](ViewOptions& v, double share) { v.discard = share; });
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip(
        "rollout: the share of each row's lowest weights that is left out in every layer;\n"
        "the class token's column and the diagonal never are");
}

} // namespace hydrascope::app
