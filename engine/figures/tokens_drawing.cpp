#include <algorithm>
#include <cmath>

#include "engine/figures/panel_drawing.h"
#include "engine/figures/token_text.h"

namespace hydrascope {
namespace {

struct Word {
  Box box; // relative to the body
  std::size_t index = 0;
};

TextStyle word_style(const Ink& ink) { return {ink.size * 1.1, false, Face::mono, ink.text}; }

constexpr double padding = 2.2, between = 2.5;

std::string drawn_text(const TokensPanel& panel, const std::size_t index) {
  return panel.own_spaces ? drawn_token(panel.tokens[index]) : panel.tokens[index];
}

// Lays the words out as running text; a continued word piece ("##ing") is joined to the piece before it.
std::vector<Word> flow(const TokensPanel& panel, const Ink& ink, double width) {
  std::vector<Word> words;
  const TextStyle style = word_style(ink);
  const double height = 1.75 * style.size, pitch = height + 3;
  double x = 0, y = 0;
  for (std::size_t index = 0; index < panel.tokens.size(); ++index) {
    const std::string& token = panel.tokens[index];
    const bool continues = panel.own_spaces ? !begins_word(token) : token.starts_with("##");
    const double wide = text_width(drawn_text(panel, index), style) + 2 * padding;
    x += x == 0 ? 0 : continues ? 0.6 : between;
    const bool new_line = index > 0 && panel.own_spaces && ends_line(panel.tokens[index - 1]);
    if (x > 0 && (new_line || x + wide > width)) {
      x = 0;
      y += pitch;
    }
    words.push_back({{x, y, std::min(wide, width), height}, index});
    x += wide;
  }
  return words;
}

Colour ink_on(const Colour& ground) {
  const auto linear = [](float channel) { return std::pow(static_cast<double>(channel), 2.2); };
  const double luminance =
      0.2126 * linear(ground.red) + 0.7152 * linear(ground.green) + 0.0722 * linear(ground.blue);
  // The better of the two contrast ratios of WCAG 2.
  return (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) ? Colour{0, 0, 0, 1} : Colour{1, 1, 1, 1};
}

// A token wider than the whole line is set in fewer points rather than cut off.
TextStyle fitted(const std::string& token, TextStyle style, double width) {
  const double wide = text_width(token, style);
  if (wide > width) {
    style.size *= width / wide;
  }
  return style;
}

} // namespace

Surround surround(const TokensPanel& panel, const Ink& ink, const Placement& placement, const Extent& body) {
  Surround room;
  room.below = note_height(panel.note, ink, body.width);
  if (placement.own_bar) {
    room.below += horizontal_bar_room(ink);
  }
  return room;
}

double body_height(const TokensPanel& panel, const Ink& ink, double width) {
  const auto words = flow(panel, ink, width);
  return words.empty() ? 0 : words.back().box.bottom();
}

void draw(Canvas& canvas, const TokensPanel& panel, const Ink& ink, const Placement& placement,
          const Box& body) {
  const ColourTable colours = colours_on(ink.ground, panel.scale.map, Backdrop::words);
  for (const auto& word : flow(panel, ink, body.width)) {
    const Box box{body.x + word.box.x, body.y + word.box.y, word.box.width, word.box.height};
    const double value = word.index < panel.values.size() ? panel.values[word.index] : std::nan("");
    const std::string text = drawn_text(panel, word.index);
    TextStyle style = fitted(text, word_style(ink), box.width - 2 * padding);
    if (std::isnan(value)) {
      canvas.outline(box, ink.grid, 0.5, 1.5);
    } else {
      const Colour ground = colour_at(colours, scale_position(panel.scale, value));
      canvas.fill(box, ground, 1.5);
      canvas.outline(box, ink.grid, 0.35, 1.5);
      style.colour = ink_on(ground);
    }
    canvas.text(text, {box.x + padding, box.y + box.height / 2 + 0.36 * style.size}, style);
    if (panel.query && static_cast<std::size_t>(*panel.query) == word.index) {
      canvas.outline({box.x - 1, box.y - 1, box.width + 2, box.height + 2}, ink.accent, 1.2, 2.2);
    }
  }
  const double note = draw_note(canvas, panel.note, ink, {body.x, body.bottom()}, body.width);
  if (placement.own_bar) {
    draw_horizontal_bar(canvas, panel.scale, Backdrop::words, ink, {body.x, body.bottom() + note},
                        body.width);
  }
}

std::optional<PanelItem> item_at(const TokensPanel& panel, const Ink& ink, const Box& body, Point point) {
  for (const auto& word : flow(panel, ink, body.width)) {
    if (contains(Box{body.x + word.box.x, body.y + word.box.y, word.box.width, word.box.height}, point))
      return PanelItem{word.index};
  }
  return {};
}

std::optional<Box> box_of(const TokensPanel& panel, const Ink& ink, const Box& body, const PanelItem& item) {
  const auto words = flow(panel, ink, body.width);
  if (item.index >= words.size()) return {};
  const Box& box = words[item.index].box;
  return Box{body.x + box.x, body.y + box.y, box.width, box.height};
}

} // namespace hydrascope
