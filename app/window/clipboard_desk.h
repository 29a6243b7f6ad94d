// What actions want of the clipboard: pictures through an X11 selection of our own, text through GLFW's.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/state/editor.h"
#include "app/window/picture_clipboard.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

class ClipboardDesk {
public:
  // As PictureClipboard.
  ClipboardDesk(std::string obstacle, std::function<void()> wake);
  // Once per frame, on the window's thread. `figure_of` gives what a panel shows.
  void poll(Editor& editor, const std::function<std::optional<Figure>(const std::string&)>& figure_of);
  // A picture has been asked for and has not come yet.
  bool waiting() const { return waiting_; }

private:
  void copy_input(Editor& editor);
  void copy_figure(Editor& editor, const std::optional<Figure>& figure);
  void copy_numbers(Editor& editor, const std::optional<Figure>& figure);
  void paste(Editor& editor);

  PictureClipboard pictures_;
  bool waiting_ = false;
};

// A pasted text: a file that exists is opened (file managers copy file:// addresses), anything else is a
// sentence, and two with a tab between them are a pair.
void open_pasted_text(Editor& editor, std::string text);

} // namespace hydrascope::app
