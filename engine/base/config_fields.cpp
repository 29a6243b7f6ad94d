#include "engine/base/config_fields.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/json_limits.h"
#include "engine/base/paths.h"

namespace hydrascope {
namespace {

// Long values (a label list where a number belongs) would drown the message.
std::string short_text(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

} // namespace

ConfigFields::ConfigFields(nlohmann::json values, std::filesystem::path file)
    : values_(std::move(values)), file_(std::move(file)) {}

ConfigFields ConfigFields::of_file(const std::filesystem::path& file) {
  const std::string text = read_text_file(file);
  if (const char* const why = why_not_parsed(text))
    throw BrokenFile(file.string(), why, "fetch the model's files again");
  nlohmann::json values = nlohmann::json::parse(text, nullptr, false);
  if (values.is_discarded() || !values.is_object())
    throw BrokenFile(file.string(), "is not a JSON object", "fetch the model's files again");
  return ConfigFields(std::move(values), file);
}

bool ConfigFields::has(const std::string& key) const {
  const auto found = values_.find(key);
  return found != values_.end() && !found->is_null();
}

void ConfigFields::fail(const std::string& key, const std::string& reason) const {
  throw BrokenFile(file_.string(), key + " " + reason, "correct the file or fetch it again");
}

int ConfigFields::checked_integer(const std::string& key, const nlohmann::json& value, std::int64_t low,
                                  std::int64_t high) const {
  const bool fits = value.is_number() && std::isfinite(value.get<double>()) &&
                    value.get<double>() >= static_cast<double>(low) &&
                    value.get<double>() <= static_cast<double>(high);
  if (!fits || std::floor(value.get<double>()) != value.get<double>())
    fail(key, fmt::format("is {}, not a whole number from {} to {}", short_text(value), low, high));
  return static_cast<int>(value.get<double>());
}

int ConfigFields::integer(const std::string& key, std::int64_t low, std::int64_t high,
                          std::optional<int> fallback) const {
  if (has(key)) return checked_integer(key, value(key), low, high);
  if (!fallback) fail(key, "is missing");
  return *fallback;
}

double ConfigFields::real(const std::string& key, double low, double high,
                          std::optional<double> fallback) const {
  if (!has(key)) {
    if (!fallback) fail(key, "is missing");
    return *fallback;
  }
  const auto& found = value(key);
  if (!found.is_number() || !(found.get<double>() >= low && found.get<double>() <= high))
    fail(key, fmt::format("is {}, not a number from {} to {}", short_text(found), low, high));
  return found.get<double>();
}

bool ConfigFields::boolean(const std::string& key, bool fallback) const {
  if (!has(key)) return fallback;
  if (!value(key).is_boolean()) fail(key, fmt::format("is {}, not true or false", short_text(value(key))));
  return value(key).get<bool>();
}

std::string ConfigFields::text(const std::string& key, const std::string& fallback) const {
  if (!has(key)) return fallback;
  if (!value(key).is_string()) fail(key, fmt::format("is {}, not text", short_text(value(key))));
  return value(key).get<std::string>();
}

std::array<int, 2> ConfigFields::size(const std::string& key, std::int64_t low, std::int64_t high,
                                      std::optional<int> fallback) const {
  if (has(key) && value(key).is_array()) {
    if (value(key).size() != 2) fail(key, "does not have two entries (height, width)");
    return {checked_integer(key, value(key)[0], low, high), checked_integer(key, value(key)[1], low, high)};
  }
  const int side = integer(key, low, high, fallback);
  return {side, side};
}

std::array<double, 3> ConfigFields::channels(const std::string& key,
                                             const std::array<double, 3>& fallback) const {
  if (!has(key)) return fallback;
  const auto& found = value(key);
  if (found.is_number()) return {found.get<double>(), found.get<double>(), found.get<double>()};
  if (!found.is_array() || found.size() != 3) fail(key, "does not have three numbers, one per channel");
  std::array<double, 3> result{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!found[i].is_number()) fail(key, "holds something that is not a number");
    result[i] = found[i].get<double>();
  }
  return result;
}

std::array<double, 3> ConfigFields::divisors(const std::string& key,
                                             const std::array<double, 3>& fallback) const {
  const std::array<double, 3> result = channels(key, fallback);
  for (const double number : result)
    if (number == 0 || !std::isfinite(number)) fail(key, "holds a zero or an infinity");
  return result;
}

ConfigFields ConfigFields::object(const std::string& key) const {
  if (!has(key)) return ConfigFields(nlohmann::json::object(), file_);
  if (!value(key).is_object()) fail(key, "is not an object");
  return ConfigFields(value(key), file_);
}

} // namespace hydrascope
