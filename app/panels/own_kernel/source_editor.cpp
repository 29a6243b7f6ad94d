#include "app/panels/own_kernel/source_editor.h"

#include <algorithm>

#include <TextEditor.h>

#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr const char* source_id = "##source";
constexpr ImGuiWindowFlags source_flags = ImGuiWindowFlags_NoMove | ImGuiWindowFlags_HorizontalScrollbar;

TextEditor::Palette source_palette() {
  using Color = TextEditor::Color;
  TextEditor::Palette palette;
  const auto set = [&](Color of, const ImVec4& colour, float opacity = 1) {
    palette.at(static_cast<std::size_t>(of)) = theme::packed(colour, opacity);
  };
  set(Color::text, theme::text);
  set(Color::keyword, theme::accent);
  set(Color::declaration, theme::accent);
  set(Color::number, theme::side_b);
  set(Color::string, theme::side_a);
  set(Color::punctuation, theme::quiet);
  set(Color::preprocessor, theme::quiet);
  set(Color::identifier, theme::text);
  set(Color::knownIdentifier, theme::text);
  set(Color::comment, theme::quiet);
  set(Color::background, theme::ground);
  set(Color::cursor, theme::text);
  set(Color::selection, theme::accent, 0.35f);
  set(Color::whitespace, theme::faint, 0.5f);
  set(Color::matchingBracketBackground, theme::raised_more);
  for (const Color bracket : {Color::matchingBracketActive, Color::matchingBracketLevel1,
                              Color::matchingBracketLevel2, Color::matchingBracketLevel3})
    set(bracket, theme::quiet);
  set(Color::matchingBracketError, theme::red);
  set(Color::lineNumber, theme::faint);
  set(Color::currentLineNumber, theme::text);
  set(Color::currentLineHighlight, theme::raised, 0.6f);
  set(Color::currentLineHighlightBorder, theme::raised, 0);
  return palette;
}

bool is_blank(const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; }

} // namespace

SourceEditor::SourceEditor() : editor_(std::make_unique<TextEditor>()) {
  editor_->SetLanguage(TextEditor::Language::Python());
  editor_->SetTabSize(4);
  editor_->SetInsertSpacesOnTabs(true);
  editor_->SetShowWhitespacesEnabled(false);
  editor_->SetShowScrollbarMiniMapEnabled(false);
  editor_->SetShowCurrentLineHighlightEnabled(false);
  editor_->SetCompletePairedGlyphs(false); // the text is what was typed
}

SourceEditor::~SourceEditor() = default;

void SourceEditor::set_text(const std::string& text) {
  editor_->SetText(text);
  text_ = editor_->GetText();
  set_problem({});
}

void SourceEditor::set_problem(const std::optional<MapProblem>& problem) {
  problem_ = problem;
  editor_->ClearMarkers();
  if (!problem || problem->line < 1) return;
  editor_->AddMarker(static_cast<std::size_t>(problem->line) - 1, theme::packed(theme::red, 0.3f),
                     theme::packed(theme::red, 0.16f), problem->reason, problem->reason);
}

void SourceEditor::apply_theme() {
  if (mode_ == theme::current_mode()) return;
  mode_ = theme::current_mode();
  editor_->SetPalette(source_palette());
  set_problem(std::optional(problem_)); // the mark's colour
}

bool SourceEditor::draw(const Graphics& graphics, ImVec2 size) {
  apply_theme();
  ImGui::PushFont(graphics.fonts().mono, is_low_window() ? theme::size_small : theme::size_text);
  editor_->Render(source_id, size, ImGuiChildFlags_None, source_flags);
  if (ImGui::IsItemVisible()) draw_problem(graphics, ImGui::GetItemRectSize());
  ImGui::PopFont();
  std::string text = editor_->GetText();
  if (text == text_) return false;
  text_ = std::move(text);
  return true;
}

void SourceEditor::draw_problem(const Graphics& graphics, ImVec2 size) const {
  if (!problem_ || problem_->line < 1) return;
  const std::size_t lines = editor_->GetLineCount();
  const std::size_t line = std::min(static_cast<std::size_t>(problem_->line), lines) - 1;
  const std::string at_line = editor_->GetLineText(line);
  const bool free_below = line + 1 == lines || is_blank(editor_->GetLineText(line + 1));
  const std::size_t start = free_below ? std::min(at_line.find_first_not_of(" \t"), at_line.size()) : 0;
  ImVec2 at = editor_->DocPos2ScreenPos({line, free_below ? start : at_line.size()});
  if (free_below)
    at.y += editor_->GetLineHeight();
  else
    at.x += 3 * editor_->GetGlyphWidth();
  ImGui::BeginChild(source_id, size, ImGuiChildFlags_None, source_flags); // goes on with the editor's window
  // Behind the line numbers, which stay where they are when the text scrolls.
  at.x = std::max(at.x, editor_->DocPos2ScreenPos({line, 0}).x + ImGui::GetScrollX());
  const float room =
      ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - ImGui::GetStyle().ScrollbarSize - at.x;
  constexpr float least_room = 80;
  if (room >= least_room) {
    ImGui::PushFont(graphics.fonts().regular, theme::size_small);
    const float below = (editor_->GetLineHeight() - ImGui::GetTextLineHeight()) / 2;
    ImGui::GetWindowDrawList()->AddText({at.x, at.y + below}, theme::packed(theme::red),
                                        fitted(problem_->reason, room).c_str());
    ImGui::PopFont();
  }
  ImGui::EndChild();
}

} // namespace hydrascope::app
