#include "app/panels/kernels/adapter_section.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

std::string choice_text(const AdapterChoice& choice) {
  if (choice.automatic) return "automatic";
  return choice.files.empty() ? "none" : choice.files.back().stem().string();
}

std::string adapter_tooltip(const FoundAdapter& adapter) {
  std::string text =
      fmt::format("{}\n{}\n{}", adapter.info.name, adapter.info.summary, adapter.info.path.string());
  for (const AdapterInfo::Layer& layer : adapter.info.layers)
    text += fmt::format("\nlayer {}: {}", layer.layer, layer.kernel.text());
  return text;
}

void draw_found(Editor& editor, const FoundAdapter& adapter) {
  const AdapterChoice& choice = editor.document().scene().adapters;
  const bool chosen = !choice.automatic && std::ranges::count(choice.files, adapter.info.path) > 0;
  std::string label = adapter.info.name + (adapter.bundled ? "" : " (your file)");
  if (adapter.holds) label += ": holds this layer's kernel";
  if (ImGui::Selectable(with_known_glyphs(label).c_str(), chosen)) open_adapter(editor, adapter.info.path);
  if (ImGui::IsItemHovered()) text_tooltip(adapter_tooltip(adapter));
}

} // namespace

void draw_adapter_section(Editor& editor, const Graphics& graphics, const AdapterNotes& notes) {
  const AdapterChoice& choice = editor.document().scene().adapters;
  field_label("Adapter", 56);
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::SetNextItemWidth(width);
  const std::string shown = fitted(choice_text(choice), width - ImGui::GetFrameHeight() - 12);
  if (ImGui::BeginCombo("##adapter", shown.c_str(), ImGuiComboFlags_HeightLarge)) {
    if (ImGui::Selectable("automatic", choice.automatic)) choose_adapters(editor, {});
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("The model's own tail, and bundled adapters that fit the kernels, by themselves");
    const bool none = !choice.automatic && choice.files.empty();
    if (ImGui::Selectable("none", none)) choose_adapters(editor, {.automatic = false, .files = {}});
    ImGui::Separator();
    for (std::size_t i = 0; i < notes.found.size(); ++i) {
      ImGui::PushID(static_cast<int>(i));
      draw_found(editor, notes.found[i]);
      ImGui::PopID();
    }
    if (ImGui::Selectable("Open file…")) editor.emit(ShowDialog{Dialog::open_adapter});
    ImGui::EndCombo();
  }
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  ellipsis_text(notes.state.text.empty() ? "known once the model has run" : notes.state.text,
                ImGui::GetContentRegionAvail().x, notes.state.warning ? theme::amber : theme::quiet);
  ImGui::PopFont();
}

} // namespace hydrascope::app
