#include "app/panels/input/sentence_editor.h"

#include <algorithm>

#include <imgui.h>
#include <imgui_stdlib.h>

#include "app/document/edits.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

// Seconds without a key: before the model runs, and before what follows is another undo step.
constexpr double typing_pause = 0.15;
constexpr double burst_pause = 1.0;

} // namespace

void SentenceEditor::follow(const TextInput* text) {
  if (text == nullptr || waiting_) return;
  text_ = text->text;
  // What was typed second is kept while it is switched off.
  if (text->pair) pair_ = *text->pair;
  with_pair_ = text->pair.has_value();
}

void SentenceEditor::commit(Editor& editor) {
  if (!waiting_) return;
  waiting_ = false;
  last_commit_ = editor.clock();
  type_text(editor, text_, with_pair_ ? std::optional(pair_) : std::nullopt, burst_);
}

void SentenceEditor::draw(Editor& editor, const Graphics& graphics) {
  ImGui::PushFont(graphics.fonts().regular, theme::size_text);
  const float width = ImGui::GetContentRegionAvail().x;
  const auto field = [&](const char* id, std::string& text, float height) {
    const bool typed = ImGui::InputTextMultiline(id, &text, {width, height}, ImGuiInputTextFlags_WordWrap);
    if (ImGui::IsItemActivated()) ++burst_;
    return typed;
  };
  bool typed = field("##text", text_, with_pair_ ? 72 : 96);
  const bool switched = ImGui::Checkbox("Pair with a second sentence", &with_pair_);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("Both go in together: [CLS] first [SEP] second [SEP]");
  if (with_pair_) typed |= field("##pair", pair_, 72);
  ImGui::PopFont();

  const double now = editor.clock();
  if (typed || switched) {
    if (switched || now - std::max(last_key_, last_commit_) > burst_pause) ++burst_;
    last_key_ = now;
    waiting_ = true;
  }
  if (!waiting_) return;
  if (switched || now - last_key_ >= typing_pause) {
    commit(editor);
  } else {
    editor.draw_soon();
  }
}

} // namespace hydrascope::app
