#include "app/panels/write/running_text.h"

#include <algorithm>
#include <utility>

#include "app/ui/widgets.h"
#include "engine/figures/token_text.h"

namespace hydrascope::app {

namespace {

constexpr float between_lines = 5;
constexpr std::size_t most_of_the_beginning = 600; // bytes

// The end of a long text, from a word on.
std::string_view end_of(std::string_view text) {
  if (text.size() <= most_of_the_beginning) return text;
  const std::size_t word = text.find(' ', text.size() - most_of_the_beginning);
  return word == std::string_view::npos ? text : text.substr(word + 1);
}

} // namespace

void RunningText::add(std::string_view text, const std::optional<std::size_t> token) {
  Piece piece;
  piece.token = token;
  piece.begins_word = begins_word(text);
  piece.breaks = static_cast<int>(std::ranges::count(text, '\n'));
  for (const char byte : text)
    if (byte != '\n' && byte != '\r') piece.text += byte == '\t' ? ' ' : byte;
  pieces_.push_back(std::move(piece));
}

void RunningText::set(const std::string& prompt, const std::vector<WrittenToken>& tokens,
                      const std::optional<std::size_t> differs_at) {
  pieces_.clear();
  differs_at_ = differs_at;
  width_ = 0;
  std::string_view beginning = end_of(prompt);
  if (beginning.size() < prompt.size()) add("… ", std::nullopt);
  while (!beginning.empty()) { // a piece a word, with the space or line break before it
    const std::size_t next = beginning.find_first_of(" \n", 1);
    add(beginning.substr(0, next), std::nullopt);
    beginning = next == std::string_view::npos ? std::string_view() : beginning.substr(next);
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) add(tokens[i].text, i);
}

void RunningText::follow(const bool written) {
  if (written) at_end_ = true;
  to_difference_ = !written;
}

float RunningText::line_height(const Graphics& graphics) {
  ImGui::PushFont(graphics.fonts().regular, theme::size_text);
  const float line = ImGui::GetTextLineHeight() + between_lines;
  ImGui::PopFont();
  return line;
}

void RunningText::lay_out(const float width) {
  const float line = ImGui::GetTextLineHeight() + between_lines;
  ImVec2 at{0, 0};
  for (std::size_t first = 0; first < pieces_.size();) {
    std::size_t end = first + 1; // of the word
    while (end < pieces_.size() && !pieces_[end].begins_word && pieces_[end - 1].breaks == 0) ++end;
    float whole = 0;
    for (std::size_t i = first; i < end; ++i) {
      pieces_[i].text = with_known_glyphs(pieces_[i].text);
      pieces_[i].without_space = false;
      pieces_[i].width = ImGui::CalcTextSize(pieces_[i].text.c_str()).x;
      whole += pieces_[i].width;
    }
    if (at.x > 0 && at.x + whole > width) at = {0, at.y + line};
    if (at.x == 0 && pieces_[first].breaks == 0 && pieces_[first].text.starts_with(' ')) {
      pieces_[first].without_space = true;
      pieces_[first].width -= ImGui::CalcTextSize(" ").x;
    }
    for (std::size_t i = first; i < end; ++i) {
      Piece& piece = pieces_[i];
      if (at.x > 0 && at.x + piece.width > width) at = {0, at.y + line}; // a word longer than a line
      piece.at = at;
      at.x += piece.width;
      if (piece.breaks > 0) at = {0, at.y + line * static_cast<float>(piece.breaks)};
    }
    first = end;
  }
  width_ = width;
  font_size_ = ImGui::GetFontSize();
  height_ = at.y + line;
}

std::optional<std::size_t> RunningText::draw(const Graphics& graphics, const float brightness) {
  ImGui::PushFont(graphics.fonts().regular, theme::size_text);
  const float width = ImGui::GetContentRegionAvail().x;
  const bool other = width != width_ || font_size_ != ImGui::GetFontSize();
  if (other) lay_out(width);
  const ImVec2 from = ImGui::GetCursorScreenPos(), mouse = ImGui::GetMousePos();
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
  const float line = ImGui::GetTextLineHeight();
  ImDrawList* const list = ImGui::GetWindowDrawList();
  const bool inside = ImGui::IsWindowHovered();
  std::optional<std::size_t> hovered;
  for (const Piece& piece : pieces_) {
    const ImVec2 at{from.x + piece.at.x, from.y + piece.at.y};
    if (at.y + line < top || at.y > bottom) continue;
    const bool over = inside && piece.token && mouse.x >= at.x && mouse.x < at.x + piece.width &&
                      mouse.y >= at.y && mouse.y < at.y + line;
    if (over) {
      hovered = piece.token;
      list->AddRectFilled(at, {at.x + piece.width, at.y + line}, theme::packed(theme::raised_more), 2.0f);
    }
    list->AddText(at, piece.token ? theme::packed(theme::text, brightness) : theme::packed(theme::quiet),
                  shown(piece));
    if (piece.token && piece.token == differs_at_)
      list->AddLine({at.x, at.y + line + 1}, {at.x + std::max(piece.width, 6.0f), at.y + line + 1},
                    theme::packed(theme::accent), 2.0f);
  }
  ImGui::Dummy({width, height_});
  // The height of a text that has just been laid out is known to the window in the next frame.
  if (other && at_end_) ImGui::SetScrollHereY(1);
  if (!other) at_end_ = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - line;
  const auto difference = std::ranges::find_if(
      pieces_, [&](const Piece& piece) { return piece.token && piece.token == differs_at_; });
  if (!other && std::exchange(to_difference_, false) && difference != pieces_.end() &&
      difference->at.y < ImGui::GetScrollY())
    ImGui::SetScrollY(
        std::max(0.0f, difference->at.y - (line + between_lines))); // below a line of what is common
  ImGui::PopFont();
  return hovered;
}

} // namespace hydrascope::app
