// The figure's shapes as SVG, written directly: text stays text, ids are stable, cells stay crisp.
#pragma once

#include <string>

#include "engine/figures/cairo_canvas.h"
#include "engine/figures/canvas.h"

namespace hydrascope {

// The whole document. `provenance` becomes its <metadata> element, `title` and `description` what screen
// readers say.
std::string svg_bytes(const PageSize& page, bool transparent, const std::string& title,
                      const std::string& description, const std::string& provenance, const DrawOn& draw);

std::string base64(std::string_view bytes);
std::string xml_escaped(std::string_view text);

} // namespace hydrascope
