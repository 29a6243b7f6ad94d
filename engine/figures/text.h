// Measuring and breaking text, and the fonts that show it. The same metrics serve every output format, so
// that all of them share one layout.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/figures/canvas.h"

namespace hydrascope {

// In points, by the metrics of Inter and JetBrains Mono where they are installed, else of fontconfig's
// substitutes.
double text_width(std::string_view text, const TextStyle& style);
double ascent(const TextStyle& style);      // of capitals, with a little room above
double line_height(const TextStyle& style); // from baseline to baseline

// The lines of a text of at most this width: broken at line breaks and spaces, and inside a word only where
// the word is wider than `width`.
std::vector<std::string> wrap_text(std::string_view text, const TextStyle& style, double width);

// The text with "…" in the place of its middle where it is wider than `width`: names that differ at either
// end still do.
std::string shortened_text(std::string_view text, const TextStyle& style, double width);

// Whether the text has letters that are read from right to left (Hebrew, Arabic). PNG and PDF have them one
// by one from left to right: cairo alone neither orders nor joins them.
bool has_right_to_left(std::string_view text);

// The text as UTF-8, as a file's name may not be: cairo takes nothing else, nor does XML. Each stray byte and
// control character becomes a middle dot, a tab a space.
std::string valid_utf8(std::string_view text);

// A piece of a text in one installed font family.
struct TextRun {
  std::string family;
  std::string text;
};
// The text split where the style's family lacks a character that a fallback family has. A character that no
// installed font has becomes "U+XXXX".
std::vector<TextRun> text_runs(std::string_view text, const TextStyle& style);

struct FontFile {
  std::string family;
  std::filesystem::path file;
  int index = 0; // of the font within a collection
};
// The installed scalable fonts that fontconfig prefers for scripts and symbols that Inter and JetBrains Mono
// lack, each once; empty where fontconfig finds no fonts. Queries fontconfig at every call.
std::vector<FontFile> find_fallback_fonts();
// The same fonts, looked up once per process.
const std::vector<FontFile>& fallback_fonts();

} // namespace hydrascope
