// Bytes as text (RFC 4648, section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

std::string base64_of(std::string_view bytes);
// nullopt if the text is no base64; line breaks are not taken.
std::optional<std::vector<std::uint8_t>> bytes_of_base64(std::string_view text);

} // namespace hydrascope
