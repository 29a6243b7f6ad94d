// The desktop's clipboard: pictures through an X11 selection of our own, text through GLFW's.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/document/editor.h"
#include "app/ui/picture_clipboard.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

class Clipboard {
public:
  // As PictureClipboard.
  Clipboard(std::string obstacle, std::function<void()> wake);
  // All on the window's thread. A figure of nullopt is of a panel that shows nothing.
  void copy_input(Editor& editor);
  void copy_figure(Editor& editor, const std::optional<Figure>& figure);
  void copy_numbers(Editor& editor, const std::optional<Figure>& figure);
  void paste(Editor& editor);
  // Once per frame: opens what has been asked for and has come.
  void poll(Editor& editor);
  const std::string& picture_obstacle() const { return pictures_.obstacle(); }
  // A picture has been asked for and has not come yet.
  bool waiting() const { return waiting_; }

private:
  PictureClipboard pictures_;
  bool waiting_ = false;
};

// A pasted text: a file that exists is opened (file managers copy file:// addresses), anything else is a
// sentence, and two with a tab between them are a pair.
void open_pasted_text(Editor& editor, std::string text);

} // namespace hydrascope::app
