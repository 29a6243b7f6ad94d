#include "engine/base/json_text.h"

#include <nlohmann/json.hpp>

namespace hydrascope {
namespace {

template <typename Json>
std::string replacing_text(const Json& value, const int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

} // namespace

std::string text_of_json(const nlohmann::json& value, const int indent) {
  return replacing_text(value, indent);
}

std::string text_of_json(const nlohmann::ordered_json& value, const int indent) {
  return replacing_text(value, indent);
}

std::string read_from_json(const std::string& text) {
  return nlohmann::json::parse(text_of_json(nlohmann::json(text))).get<std::string>();
}

} // namespace hydrascope
