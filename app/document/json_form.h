// One description of a struct for its writing, its reading and its schema: the function describe() names each
// field once and is called with one of three visitors. Only for .cpp files that need all of JSON.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/document/session_files.h"
#include "engine/base/error.h"

namespace hydrascope::app {

using Json = nlohmann::ordered_json;

struct Writing {
  std::function<std::string(const std::filesystem::path&)> reference; // how a file or folder is named
  std::function<std::string(const std::filesystem::path&)> hash;      // SHA-256; "" = is not stored
  bool pixels = false;                                                // of pictures that have no file
};

// Where the reader stands, and what it has found.
struct Reading {
  std::string subject; // the file that is read
  // Where a file or folder is now; nullopt where it is missing, which is then known to whoever asked.
  std::function<std::optional<std::filesystem::path>(FileKind, const std::string& reference)> find;
  // It was there, but could not be read, for this reason.
  std::function<void(FileKind, const std::string& reference, const std::string& reason)> unreadable;
  std::vector<std::string> notes; // what was left out or replaced

  [[noreturn]] void fail(const std::string& at, const std::string& reason) const {
    throw BrokenFile(subject, fmt::format("{} {}", at.empty() ? "the whole" : at, reason),
                     "mend this entry, or open a copy of the file");
  }
  void note(const std::string& at, const std::string& what) { notes.push_back(at + ": " + what); }
};

// Ends of a number's range.
struct Bounds {
  double least = std::numeric_limits<double>::lowest(), most = std::numeric_limits<double>::max();
};

// For describe(): `S` is T, or const T where it is only written.
template <typename S, typename T>
concept Is = std::same_as<std::remove_const_t<S>, T>;

// The names of an enumeration's values, in their order, from 0: specialised beside the descriptions.
template <typename T>
inline constexpr std::array<const char*, 0> enum_names{};

// How a value of a type stands in JSON. The primary template is that of a struct with a describe().
template <typename T>
struct Form;

class FieldWriter {
public:
  explicit FieldWriter(const Writing& writing) : writing_(&writing) {}
  template <typename T>
  void operator()(const char* name, const T& value, Bounds = {}) {
    json[name] = Form<T>::write(value, *writing_);
  }
  const Writing& writing() const { return *writing_; }
  Json json = Json::object();

private:
  const Writing* writing_;
};

// An object without the entries that say nothing.
inline Json without_nulls(const Json& json) {
  Json kept = Json::object();
  for (const auto& [name, value] : json.items()) {
    if (!value.is_null()) kept[name] = value;
  }
  return kept;
}

class FieldReader {
public:
  FieldReader(const Json& json, std::string at, Reading& reading)
      : json_(&json), at_(std::move(at)), reading_(&reading) {
    if (!json.is_object()) reading.fail(at_, "is not an object");
  }
  // An entry that is not there leaves the value as it is: older files know fewer of them.
  template <typename T>
  void operator()(const char* name, T& value, Bounds bounds = {}) {
    const Json* entry = find(name);
    if (entry == nullptr) return;
    if constexpr (requires { Form<T>::read_into(value, *entry, at(name), *reading_); }) {
      Form<T>::read_into(value, *entry, at(name), *reading_); // what it leaves out stays, too
      return;
    }
    T read = Form<T>::read(*entry, at(name), *reading_);
    if constexpr (std::is_arithmetic_v<T>) {
      const auto number = static_cast<double>(read);
      if (number < bounds.least || number > bounds.most)
        reading_->fail(at(name), fmt::format("is {}, not from {} to {}", read, bounds.least, bounds.most));
    }
    value = std::move(read);
  }
  const Json* find(const char* name) {
    known_.insert(name);
    const auto found = json_->find(name);
    return found == json_->end() ? nullptr : &*found;
  }
  std::string at(const char* name) const { return at_ + "/" + name; }
  Reading& reading() { return *reading_; }
  void note_unknown() {
    for (const auto& [name, value] : json_->items()) {
      if (!known_.contains(name)) reading_->note(at_ + "/" + name, "is not known here and was left out");
    }
  }

private:
  const Json* json_;
  std::string at_;
  Reading* reading_;
  std::set<std::string> known_;
};

class FieldSchema {
public:
  template <typename T>
  void operator()(const char* name, const T&, Bounds bounds = {}) {
    Json schema = Form<T>::schema();
    if (bounds.least > std::numeric_limits<double>::lowest()) schema["minimum"] = bounds.least;
    if (bounds.most < std::numeric_limits<double>::max()) schema["maximum"] = bounds.most;
    properties[name] = std::move(schema);
  }
  Json properties = Json::object();
};

template <typename T>
struct Form {
  static Json write(const T& value, const Writing& writing) {
    FieldWriter fields(writing);
    describe(fields, value);
    return std::move(fields.json);
  }
  static T read(const Json& json, const std::string& at, Reading& reading) {
    T value{};
    read_into(value, json, at, reading);
    return value;
  }
  static void read_into(T& value, const Json& json, const std::string& at, Reading& reading) {
    FieldReader fields(json, at, reading);
    describe(fields, value);
    fields.note_unknown();
  }
  static Json schema() {
    FieldSchema fields;
    T value{};
    describe(fields, value);
    return {{"type", "object"}, {"properties", std::move(fields.properties)}};
  }
};

template <>
struct Form<bool> {
  static Json write(bool value, const Writing&) { return value; }
  static bool read(const Json& json, const std::string& at, Reading& reading) {
    if (!json.is_boolean()) reading.fail(at, "is neither true nor false");
    return json.get<bool>();
  }
  static Json schema() { return {{"type", "boolean"}}; }
};

template <std::integral T>
struct Form<T> {
  static Json write(T value, const Writing&) { return value; }
  static T read(const Json& json, const std::string& at, Reading& reading) {
    if (!json.is_number_integer()) reading.fail(at, "is not a whole number");
    const bool negative = !json.is_number_unsigned() && json.get<std::int64_t>() < 0;
    const bool fits =
        negative ? std::in_range<T>(json.get<std::int64_t>()) : std::in_range<T>(json.get<std::uint64_t>());
    if (!fits) reading.fail(at, "is a number out of range");
    return json.get<T>();
  }
  static Json schema() { return {{"type", "integer"}}; }
};

template <std::floating_point T>
struct Form<T> {
  // A float as short as it can be told from others: 0.6, not 0.6000000238418579.
  static Json write(T value, const Writing&) { return Json::parse(fmt::format("{}", value)); }
  static T read(const Json& json, const std::string& at, Reading& reading) {
    if (!json.is_number()) reading.fail(at, "is not a number");
    return json.get<T>();
  }
  static Json schema() { return {{"type", "number"}}; }
};

template <>
struct Form<std::string> {
  static Json write(const std::string& value, const Writing&) { return value; }
  static std::string read(const Json& json, const std::string& at, Reading& reading) {
    if (!json.is_string()) reading.fail(at, "is not a text");
    return json.get<std::string>();
  }
  static Json schema() { return {{"type", "string"}}; }
};

template <typename T>
requires std::is_enum_v<T>
struct Form<T> {
  static Json write(T value, const Writing&) { return enum_names<T>.at(static_cast<std::size_t>(value)); }
  static T read(const Json& json, const std::string& at, Reading& reading) {
    const std::string name = Form<std::string>::read(json, at, reading);
    std::string all;
    for (std::size_t i = 0; i < enum_names<T>.size(); ++i) {
      if (name == enum_names<T>[i]) return static_cast<T>(i);
      all += (i == 0 ? "" : ", ") + std::string(enum_names<T>[i]);
    }
    reading.fail(at, fmt::format("is “{}”, none of {}", name, all));
  }
  static Json schema() { return {{"enum", enum_names<T>}}; }
};

template <typename T>
struct Form<std::optional<T>> {
  static Json write(const std::optional<T>& value, const Writing& writing) {
    return value ? Form<T>::write(*value, writing) : Json(nullptr);
  }
  static std::optional<T> read(const Json& json, const std::string& at, Reading& reading) {
    if (json.is_null()) return std::nullopt;
    return Form<T>::read(json, at, reading);
  }
  static Json schema() { return {{"anyOf", {Form<T>::schema(), Json{{"type", "null"}}}}}; }
};

template <typename Container>
struct ListForm {
  using T = typename Container::value_type;
  static Json write(const Container& values, const Writing& writing) {
    Json json = Json::array();
    for (const T& value : values) json.push_back(Form<T>::write(value, writing));
    return json;
  }
  static Container read(const Json& json, const std::string& at, Reading& reading) {
    if (!json.is_array()) reading.fail(at, "is not a list");
    Container values;
    for (std::size_t i = 0; i < json.size(); ++i)
      values.insert(values.end(), Form<T>::read(json[i], fmt::format("{}/{}", at, i), reading));
    return values;
  }
  static Json schema() { return {{"type", "array"}, {"items", Form<T>::schema()}}; }
};
template <typename T>
struct Form<std::vector<T>> : ListForm<std::vector<T>> {};
template <typename T>
struct Form<std::set<T>> : ListForm<std::set<T>> {};

template <typename T, std::size_t count>
struct Form<std::array<T, count>> {
  static Json write(const std::array<T, count>& values, const Writing& writing) {
    Json json = Json::array();
    for (const T& value : values) json.push_back(Form<T>::write(value, writing));
    return json;
  }
  static std::array<T, count> read(const Json& json, const std::string& at, Reading& reading) {
    if (!json.is_array() || json.size() != count) reading.fail(at, fmt::format("is not a list of {}", count));
    std::array<T, count> values;
    for (std::size_t i = 0; i < count; ++i)
      values[i] = Form<T>::read(json[i], fmt::format("{}/{}", at, i), reading);
    return values;
  }
  static Json schema() {
    return {{"type", "array"}, {"items", Form<T>::schema()}, {"minItems", count}, {"maxItems", count}};
  }
};

} // namespace hydrascope::app
