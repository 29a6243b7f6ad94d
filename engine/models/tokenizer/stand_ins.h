// Characters as Hugging Face's tokenizers library classes them, whatever Unicode version the libraries here
// have.
#pragma once

#include <string>
#include <string_view>

namespace hydrascope {

// A character of the same length in UTF-8 and of the category that the reference gives `point`: Unicode 16's,
// as of Oniguruma, while Debian 12's PCRE2 has Unicode 14. Most characters stand for themselves.
char32_t stand_in(char32_t point);
// The text with each character replaced by its stand-in, so that byte offsets stay. Written into `copy` if
// anything changes; otherwise `text` itself.
std::string_view with_stand_ins(std::string_view text, std::string& copy);

// Whether the reference's Digits splits it off: category Nd, Nl or No.
bool is_numeric(char32_t point);

} // namespace hydrascope
