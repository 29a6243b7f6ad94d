// A page as the bytes of a PDF, PNG or SVG file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/figures/canvas.h"

namespace hydrascope {

using DrawOn = std::function<void(Canvas&)>;

struct PageSize {
  double width = 0, height = 0; // points
};

// `ground` fills the page; nullopt: it is transparent.

// By cairo. Text stays text (fonts embedded). The time of day is not stored. `keywords` is stored in the
// document information.
std::string pdf_bytes(const PageSize& page, const std::optional<Colour>& ground, const std::string& title,
                      const std::string& keywords, const DrawOn& draw);

// By cairo, without metadata. Throws UsageError if the picture would be too large or empty.
std::string png_bytes(const PageSize& page, double dpi, const std::optional<Colour>& ground,
                      const DrawOn& draw);
std::string png_bytes(const Pixels& pixels);
// The bytes of a PNG file with a pHYs chunk (pixels per metre) and an iTXt chunk (keyword, UTF-8 text) behind
// its header.
std::string with_png_metadata(const std::string& png, double dpi, const std::string& keyword,
                              const std::string& text);

// An SVG document: text stays text, ids are stable, cells stay crisp. `provenance` becomes the <metadata>
// element; screen readers read `title` and `description`.
std::string svg_bytes(const PageSize& page, const std::optional<Colour>& ground, const std::string& title,
                      const std::string& description, const std::string& provenance, const DrawOn& draw);

// The picture scaled down to width × height by averaging.
Pixels shrink(const Pixels& pixels, int width, int height);

} // namespace hydrascope
