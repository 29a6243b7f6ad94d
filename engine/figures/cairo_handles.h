// Owning handles for cairo's reference-counted objects.
#pragma once

#include <cairo.h>

#include <memory>

#include "engine/figures/canvas.h"

namespace hydrascope {

struct CairoRelease {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_font_face_t* face) const { cairo_font_face_destroy(face); }
  void operator()(cairo_scaled_font_t* font) const { cairo_scaled_font_destroy(font); }
  void operator()(cairo_font_options_t* options) const { cairo_font_options_destroy(options); }
};
using CairoContext = std::unique_ptr<cairo_t, CairoRelease>;
using CairoSurface = std::unique_ptr<cairo_surface_t, CairoRelease>;
using CairoFace = std::unique_ptr<cairo_font_face_t, CairoRelease>;
using CairoFont = std::unique_ptr<cairo_scaled_font_t, CairoRelease>;
using CairoFontOptions = std::unique_ptr<cairo_font_options_t, CairoRelease>;

// Without hinting, so that text has the same width in PNG and PDF.
CairoFontOptions font_options();
// An installed family's face; fontconfig's substitute where it is not installed.
CairoFace font_face(const std::string& family, bool bold);
CairoFont scaled_font(const std::string& family, const TextStyle& style);

} // namespace hydrascope
