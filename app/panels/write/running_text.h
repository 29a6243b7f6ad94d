// A text to be read, made of a beginning and a decoder's tokens: words in lines, of which only those in view
// are drawn.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/graphics.h"
#include "app/views/writing_view.h"

namespace hydrascope::app {

class RunningText {
public:
  // Shows the end of `prompt`, quiet, and the tokens. `differs_at`: the first token that another text has
  // not, which is marked.
  void set(const std::string& prompt, const std::vector<WrittenToken>& tokens,
           std::optional<std::size_t> differs_at);
  bool empty() const { return pieces_.empty(); }
  static float line_height(const Graphics& graphics);
  // The text's end while it is written; once that has ended, the first difference, if it is out of view.
  void follow(bool written);

  // Draws into the rest of the window, which follows the text's end unless the user has scrolled up. Returns
  // the token under the pointer.
  std::optional<std::size_t> draw(const Graphics& graphics, float brightness);

private:
  struct Piece {
    std::string text;
    std::optional<std::size_t> token; // nullopt: of the beginning
    int breaks = 0;                   // lines that end with it
    bool begins_word = false;
    bool without_space = false; // the space that it begins with, at the beginning of a line
    ImVec2 at = {0, 0};         // relative to the text
    float width = 0;
  };
  // Of a piece, as it is drawn.
  static const char* shown(const Piece& piece) { return piece.text.c_str() + (piece.without_space ? 1 : 0); }
  void add(std::string_view text, std::optional<std::size_t> token);
  void lay_out(float width);

  std::vector<Piece> pieces_;
  std::optional<std::size_t> differs_at_;
  float width_ = 0, height_ = 0; // of the layout; width 0: none yet
  float font_size_ = 0;
  bool at_end_ = true;         // the view is to follow the text's end
  bool to_difference_ = false; // the view is to show the first difference
};

} // namespace hydrascope::app
