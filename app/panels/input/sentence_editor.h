// The sentence, or the two of a pair, as they are typed.
#pragma once

#include <string>

#include "app/document/editor.h"
#include "app/ui/graphics.h"

namespace hydrascope::app {

// The model runs while one types: a short pause after a key takes the text into the document, and what was
// being computed for the text before is dropped. Keys that follow each other closely are one burst and one
// undo step.
class SentenceEditor {
public:
  // Takes the document's text, unless what is being typed is ahead of it.
  void follow(const TextInput* text);
  void draw(Editor& editor, const Graphics& graphics);
  // What has been typed goes into the document now.
  void commit(Editor& editor);
  // What has been typed and not been taken is given up: the document shows something else by now.
  void abandon() { waiting_ = false; }

private:
  std::string text_, pair_;
  bool with_pair_ = false;
  bool waiting_ = false;                  // for the pause
  double last_key_ = 0, last_commit_ = 0; // on the window's clock
  int burst_ = 0;
};

} // namespace hydrascope::app
