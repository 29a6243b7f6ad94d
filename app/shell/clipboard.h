// Copying and pasting: pictures through PictureClipboard, text through Dear ImGui.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/document/editor.h"
#include "app/ui/picture_clipboard.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

class Clipboard {
public:
  // `wake` is called from a thread when poll() has something to do.
  Clipboard(WindowSystem system, std::function<void()> wake);
  // Called from the window's thread. Report the result as a message. `figure`: nullopt if the panel shows
  // nothing.
  void copy_input(Editor& editor);
  void copy_figure(Editor& editor, const std::optional<Figure>& figure);
  void copy_numbers(Editor& editor, const std::optional<Figure>& figure);
  void paste(Editor& editor);
  // Once per frame: opens what paste() requested once it has arrived.
  void poll(Editor& editor);
  // Why pictures cannot be copied or pasted; empty if they can.
  const std::string& picture_obstacle() const { return obstacle_; }
  // Whether a paste has not arrived yet.
  bool waiting() const { return waiting_; }

private:
  std::unique_ptr<PictureClipboard> pictures_; // null where there is an obstacle
  std::string obstacle_;
  bool waiting_ = false;
};

// Opens a pasted text: the path or file:// URL of an existing file (as file managers copy it) as that file,
// other text as a sentence, or as a sentence pair separated by a tab.
void open_pasted_text(Editor& editor, std::string text);

} // namespace hydrascope::app
