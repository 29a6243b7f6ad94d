// The figure's shapes by cairo, and the bytes of PNG and PDF files made with it.
#pragma once

#include <functional>
#include <string>

#include "engine/figures/canvas.h"

namespace hydrascope {

using DrawOn = std::function<void(Canvas&)>;

struct PageSize {
  double width = 0, height = 0; // points
};

// Text stays text in the PDF (fonts embedded). No time of day is stored. `keywords` goes into the document
// information.
std::string pdf_bytes(const PageSize& page, bool transparent, const std::string& title,
                      const std::string& keywords, const DrawOn& draw);

// As cairo writes it, without metadata of ours.
std::string png_bytes(const PageSize& page, double dpi, bool transparent, const DrawOn& draw);

// A picture alone as PNG, and made smaller by averaging.
std::string png_bytes(const Pixels& pixels);
Pixels shrink(const Pixels& pixels, int width, int height);

} // namespace hydrascope
