// Text and resolution inside a PNG file.
#pragma once

#include <string>

namespace hydrascope {

// Puts a pHYs chunk (pixels per metre) and an iTXt chunk (keyword, UTF-8 text) behind the header of a PNG
// file's bytes.
std::string with_png_metadata(const std::string& png, double dpi, const std::string& keyword,
                              const std::string& text);

} // namespace hydrascope
