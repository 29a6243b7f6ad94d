#include "app/panels/head_choice.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

void head_combo(Editor& editor, float width) {
  const Scene& scene = editor.document().scene();
  const int heads = scene.model ? scene.model->heads : 0;
  ImGui::SetNextItemWidth(width);
  const std::string shown = fitted(scene.head.text(), width - ImGui::GetFrameHeight() - 8);
  if (!ImGui::BeginCombo("##head", shown.c_str(), ImGuiComboFlags_HeightLarge)) return;
  for (const HeadFusion fusion : {HeadFusion::mean, HeadFusion::min, HeadFusion::max}) {
    HeadChoice choice{.head = std::nullopt, .fusion = fusion, .subset = scene.head.subset};
    if (ImGui::Selectable(choice.text().c_str(), scene.head == choice)) select_head(editor, choice);
  }
  if (!scene.head.subset.empty()) {
    if (ImGui::Selectable("all heads", false))
      select_head(editor, {.head = std::nullopt, .fusion = scene.head.fusion});
  }
  ImGui::Separator();
  const std::vector<int> chosen = shown_heads(scene.head, heads);
  for (int head = 0; head < heads; ++head) {
    ImGui::PushID(head);
    bool on = std::ranges::count(chosen, head) > 0;
    if (ImGui::Checkbox("##fused", &on)) toggle_head(editor, head);
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("fuse this head with the others that are ticked");
    ImGui::SameLine(0, 6);
    const HeadChoice choice{.head = head, .fusion = scene.head.fusion};
    if (ImGui::Selectable(choice.text().c_str(), scene.head.head == head)) select_head(editor, choice);
    ImGui::PopID();
  }
  ImGui::EndCombo();
}

void selected_head(Editor& editor) {
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "layer %d", editor.document().scene().layer);
  ImGui::SameLine(0, 12);
  head_combo(editor, 124);
}

void detail_kernel_combo(Editor& editor, const KernelSpec& shown, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  kernel_square(ImGui::GetWindowDrawList(), {at.x + 5, at.y + ImGui::GetFrameHeight() / 2}, 10, shown.name);
  ImGui::SetCursorScreenPos({at.x + 16, at.y});
  const int picked = kernel_combo("##detail_kernel", shown.text(), true, width - 16);
  if (picked == -1) select_detail_kernel(editor, std::nullopt);
  if (picked >= 0) {
    select_detail_kernel(
        editor, KernelSpec{.name = kernel_infos()[static_cast<std::size_t>(picked)].name, .parameters = {}});
  }
}

void forced_choice(Editor& editor) {
  static constexpr std::array<const char*, 2> forced = {"in place", "teacher-forced"};
  const int force = segmented("forced", forced, editor.document().view.teacher_forced ? 1 : 0);
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip(
        "in place: q and k of this run\nteacher-forced: q and k of the run with softmax in every layer");
  if (force >= 0)
    change_view(editor, "Teacher-forced", [&](ViewOptions& v) { v.teacher_forced = force == 1; });
}

int vectors_head(const Document& document, const KernelSpec& kernel) {
  const Scene& scene = document.scene();
  const int heads = scene.model ? scene.model->heads : 1;
  const std::vector<int> shown = shown_heads(scene.head, heads);
  int most = heads;
  if (const auto own = kernel.parameters.find("heads"); own != kernel.parameters.end())
    std::from_chars(own->second.data(), own->second.data() + own->second.size(), most);
  return std::clamp(shown.empty() ? 0 : shown.front(), 0, std::max(most - 1, 0));
}

} // namespace hydrascope::app
