// JSON as text, whatever bytes its strings hold.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace hydrascope {

// The value as text, on one line where `indent` is below 0. What is not UTF-8, as a file's name may be,
// becomes U+FFFD.
std::string text_of_json(const nlohmann::json& value, int indent = -1);
std::string text_of_json(const nlohmann::ordered_json& value, int indent = -1);

// A string as it is read again from such text.
std::string read_from_json(const std::string& text);

} // namespace hydrascope
