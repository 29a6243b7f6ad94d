#include "app/panels/query_choice.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/token_names.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

bool chosen(const Scene& scene, std::optional<std::int64_t> token) {
  return !scene.default_query && scene.query == token;
}

void distillation_entry(Editor& editor) {
  const Document& document = editor.document();
  const Scene& scene = document.scene();
  const bool image = document.kind == InputKind::image;
  const bool there = image && scene.model && scene.model->prefix_tokens > 1;
  ImGui::BeginDisabled(!there);
  if (ImGui::Selectable("distillation token", there && chosen(scene, 1))) select_query(editor, 1);
  ImGui::EndDisabled();
  if (there || !ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) return;
  const std::string model = scene.model ? scene.model->name : "no model";
  ImGui::SetTooltip("%s has no distillation token: distilled DeiT models have one", model.c_str());
}

// Row and column of a patch; at first those of the middle.
void patch_entry(Editor& editor, const RunResult& run) {
  const Scene& scene = editor.document().scene();
  const bool a_patch = !scene.default_query && scene.query && *scene.query >= run.prefix_tokens;
  const int patch = a_patch ? static_cast<int>(*scene.query) - run.prefix_tokens
                            : run.rows / 2 * run.columns + run.columns / 2;
  int row = patch / run.columns + 1, column = patch % run.columns + 1;
  if (ImGui::Selectable("patch …", a_patch, ImGuiSelectableFlags_NoAutoClosePopups))
    select_query(editor, run.prefix_tokens + patch);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("or click a patch in the map");
  ImGui::SetNextItemWidth(96);
  bool moved = ImGui::InputInt("row", &row);
  ImGui::SetNextItemWidth(96);
  moved |= ImGui::InputInt("column", &column);
  if (!moved) return;
  row = std::clamp(row, 1, run.rows);
  column = std::clamp(column, 1, run.columns);
  select_query(editor, run.prefix_tokens + (row - 1) * run.columns + column - 1);
}

void word_entries(Editor& editor, const RunResult& run) {
  const Scene& scene = editor.document().scene();
  for (std::int64_t token = 1; token < static_cast<std::int64_t>(run.tokens.size()); ++token) {
    ImGui::PushID(static_cast<int>(token));
    const std::string name = with_known_glyphs(token_name(run, token));
    if (ImGui::Selectable(name.c_str(), chosen(scene, token))) select_query(editor, token);
    ImGui::PopID();
  }
}

} // namespace

void query_combo(Editor& editor, const RunResult* run, float width) {
  const Document& document = editor.document();
  const Scene& scene = document.scene();
  const bool image = document.kind == InputKind::image;
  const std::string name = run == nullptr ? "what the target reads" : query_name(*run);
  ImGui::SetNextItemWidth(width);
  const std::string preview =
      fitted(with_known_glyphs("query: " + name), width - ImGui::GetFrameHeight() - 8);
  if (!ImGui::BeginCombo("##query", preview.c_str(), ImGuiComboFlags_HeightLarge)) return;
  if (ImGui::Selectable("what the target reads", scene.default_query)) select_default_query(editor);
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("the class token where the classifier reads it alone, else all tokens");
  if (ImGui::Selectable(image ? "class token" : "class token [CLS]", chosen(scene, 0)))
    select_query(editor, 0);
  distillation_entry(editor);
  if (ImGui::Selectable("all tokens", chosen(scene, std::nullopt))) select_query(editor, std::nullopt);
  if (run != nullptr) {
    ImGui::Separator();
    if (image) {
      patch_entry(editor, *run);
    } else {
      word_entries(editor, *run);
    }
  }
  ImGui::EndCombo();
}

} // namespace hydrascope::app
