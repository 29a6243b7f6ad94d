// An editor of Python source with line numbers, in which one line can be marked as wrong.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <imgui.h>

#include "app/ui/graphics.h"
#include "engine/attention/own/map_check.h"

class TextEditor;

namespace hydrascope::app {

class SourceEditor {
public:
  SourceEditor();
  ~SourceEditor();
  SourceEditor(const SourceEditor&) = delete;
  SourceEditor& operator=(const SourceEditor&) = delete;

  const std::string& text() const { return text_; }
  // The caret goes to the start, and the editor's own undo forgets what was typed.
  void set_text(const std::string& text);
  // Shown under its line, or at its end where the line below holds text.
  void set_problem(const std::optional<MapProblem>& problem);
  // Returns whether this frame has changed the text.
  bool draw(const Graphics& graphics, ImVec2 size);

private:
  void apply_theme();
  void draw_problem(const Graphics& graphics, ImVec2 size) const;

  std::unique_ptr<TextEditor> editor_;
  std::string text_;
  std::optional<MapProblem> problem_;
  std::optional<theme::Mode> mode_; // of the editor's colours; nullopt: not yet set
};

} // namespace hydrascope::app
