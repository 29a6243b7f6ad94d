// Measuring and breaking text. The same metrics serve every output format, so that they share one layout.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/figures/canvas.h"

namespace hydrascope {

// In points. The fonts are Inter and JetBrains Mono where installed, else what fontconfig gives in their
// place.
double text_width(std::string_view text, const TextStyle& style);
double ascent(const TextStyle& style);      // of capitals with a little room above
double line_height(const TextStyle& style); // from baseline to baseline

// Breaks at spaces, at given line breaks, and inside words only where a single word is wider than `width`.
std::vector<std::string> wrap_text(std::string_view text, const TextStyle& style, double width);

// A piece of a text that one installed font family can show.
struct TextRun {
  std::string family;
  std::string text;
};
// Splits a text where its first family lacks a character that a fallback family has. A character that no
// installed font has is written as U+XXXX.
std::vector<TextRun> text_runs(std::string_view text, const TextStyle& style);

} // namespace hydrascope
