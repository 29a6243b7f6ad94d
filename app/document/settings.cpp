#include "app/document/settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "app/document/json_codec.h"
#include "engine/base/error.h"
#include "engine/base/json_limits.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/base/temporary.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> theme_names = {"follow", "dark", "light"};

Json layout_json(const SavedLayout& layout) {
  return {{"name", layout.name}, {"closed", layout.closed}, {"arrangement", layout.arrangement}};
}

SavedLayout layout_of(const Json& json) {
  return {.name = json.at("name").get<std::string>(),
          .arrangement = json.at("arrangement").get<std::string>(),
          .closed = json.at("closed").get<std::vector<std::string>>()};
}

ThemeChoice theme_of(const Json& json) {
  const auto name = json.get<std::string>();
  const auto* const found = std::ranges::find(theme_names, name);
  if (found == theme_names.end()) throw std::runtime_error("is none of follow, dark, light");
  return static_cast<ThemeChoice>(found - theme_names.begin());
}

void read_setting(Settings& settings, const std::string& key, const Json& value, Json& other) {
  if (key == "theme") {
    settings.theme = theme_of(value);
  } else if (key == "scale") {
    if (!value.is_null()) settings.scale = std::clamp(value.get<double>(), least_scale, greatest_scale);
  } else if (key == "fade") {
    settings.fade = value.get<bool>();
  } else if (key == "reopen_last") {
    settings.reopen_last = value.get<bool>();
  } else if (key == "tour_seen") {
    settings.tour_seen = value.get<bool>();
  } else if (key == "hint_seen") {
    settings.hint_seen = value.get<bool>();
  } else if (key == "shortcuts") {
    settings.shortcuts = value.get<std::map<std::string, std::string>>();
  } else if (key == "layouts") {
    for (const Json& each : value) settings.layouts.push_back(layout_of(each));
  } else if (key == "last_layout") {
    if (!value.is_null()) settings.last = layout_of(value);
  } else if (key == "recent") {
    for (const Json& each : value) {
      const bool is_text = each.contains("text");
      settings.recent.push_back({each.at(is_text ? "text" : "path").get<std::string>(), is_text});
    }
  } else if (key == "training") {
    if (!value.is_null()) settings.training = value.dump();
  } else {
    other[key] = value;
  }
}

// The first free name beside the file.
fs::path unused_name(const fs::path& file) {
  const std::string base = file.string() + ".unreadable";
  std::error_code none;
  fs::path free = base;
  for (int number = 2; fs::exists(free, none); ++number) free = fmt::format("{}-{}", base, number);
  return free;
}

} // namespace

std::string settings_text(const Settings& settings) {
  Json json = settings.other.empty() ? Json::object() : Json::parse(settings.other);
  json["theme"] = theme_names[static_cast<std::size_t>(settings.theme)];
  json["scale"] = settings.scale ? Json(*settings.scale) : Json(nullptr);
  json["fade"] = settings.fade;
  json["reopen_last"] = settings.reopen_last;
  json["tour_seen"] = settings.tour_seen;
  json["hint_seen"] = settings.hint_seen;
  json["shortcuts"] = settings.shortcuts;
  json["layouts"] = Json::array();
  for (const SavedLayout& layout : settings.layouts) json["layouts"].push_back(layout_json(layout));
  json["recent"] = Json::array();
  for (const RecentInput& recent : settings.recent)
    json["recent"].push_back({{recent.is_text ? "text" : "path", recent.value}});
  json["last_layout"] = settings.last ? layout_json(*settings.last) : Json(nullptr);
  json["training"] = settings.training.empty() ? Json(nullptr) : Json::parse(settings.training);
  return text_of_json(json, 2) + "\n";
}

Settings parse_settings(std::string_view text, std::string_view subject) {
  if (const char* const why = why_not_parsed(text, JsonNames::ordered)) throw BrokenFile(subject, why);
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw BrokenFile(subject, fmt::format("is not JSON at byte {}", error.byte));
  } catch (const Json::out_of_range&) {
    throw BrokenFile(subject, "holds a number that is too large");
  }
  if (!json.is_object()) throw BrokenFile(subject, "is not a JSON object");
  Settings settings;
  Json other = Json::object();
  for (const auto& [key, value] : json.items()) {
    try {
      read_setting(settings, key, value, other);
    } catch (const Json::exception&) {
      throw BrokenFile(subject, "\"" + key + "\" is not of the expected form");
    } catch (const std::runtime_error& error) {
      throw BrokenFile(subject, "\"" + key + "\" " + error.what());
    }
  }
  if (!other.empty()) settings.other = other.dump();
  return settings;
}

LoadedSettings load_settings(const fs::path& file) {
  std::error_code none;
  if (!fs::exists(file, none)) return {};
  LoadedSettings loaded;
  try {
    loaded.settings = parse_settings(read_text_file(file), file.string());
  } catch (const std::exception& error) {
    const fs::path aside = unused_name(file);
    std::error_code failed;
    fs::rename(file, aside, failed);
    loaded.writable = !failed;
    loaded.problem = failed ? fmt::format("{}; the defaults are used, and nothing is saved", error.what())
                            : fmt::format("{}; the defaults are used, and the file is kept as {}",
                                          error.what(), aside.filename().string());
  }
  return loaded;
}

void save_settings(const Settings& settings, const fs::path& file) {
  create_folders(file.parent_path());
  write_file_atomically(file, settings_text(settings));
}

double stepped_scale(double scale, int steps) {
  constexpr std::array<double, 10> scales = {least_scale, 0.9,  1.0, 1.1,  1.25,
                                             1.5,         1.75, 2.0, 2.25, greatest_scale};
  constexpr double tolerance = 1e-3; // a monitor's scale need not be one of these
  const auto larger = std::ranges::find_if(scales, [&](double each) { return each > scale + tolerance; });
  const auto not_smaller =
      std::ranges::find_if(scales, [&](double each) { return each > scale - tolerance; });
  const auto index =
      steps > 0 ? (larger - scales.begin()) + steps - 1 : (not_smaller - scales.begin()) + steps;
  const auto last = static_cast<std::ptrdiff_t>(scales.size()) - 1;
  return scales[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(index, 0, last))];
}

const SavedLayout* find_layout(const Settings& settings, std::string_view name) {
  const auto found = std::ranges::find(settings.layouts, name, &SavedLayout::name);
  return found == settings.layouts.end() ? nullptr : &*found;
}

std::optional<ThemeChoice> desktop_theme() {
  for (const char* version : {"gtk-4.0", "gtk-3.0"}) {
    std::istringstream lines;
    try {
      lines.str(read_text_file(config_folder().parent_path() / version / "settings.ini"));
    } catch (const Error&) {
      continue; // most desktops have only one of the two
    }
    for (std::string line; std::getline(lines, line);) {
      std::erase_if(line, [](unsigned char c) { return c == ' ' || c == '\t' || c == '\r'; });
      constexpr std::string_view key = "gtk-application-prefer-dark-theme=";
      if (!line.starts_with(key)) continue;
      const std::string value = line.substr(key.size());
      return value == "1" || value == "true" ? ThemeChoice::dark : ThemeChoice::light;
    }
  }
  return std::nullopt;
}

} // namespace hydrascope::app
