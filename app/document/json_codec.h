// Conversion of values to and from JSON, with a schema. A struct is described once: its function describe()
// names each field and is called with a visitor that writes, reads or makes the schema. Include in .cpp files
// only: this pulls in all of nlohmann/json.
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

#include "app/document/session.h"
#include "engine/base/error.h"

namespace hydrascope::app {

using Json = nlohmann::ordered_json;

struct WriteContext {
  std::function<std::string(const std::filesystem::path&)>
      reference;                                                 // the name of a file or folder in the JSON
  std::function<std::string(const std::filesystem::path&)> hash; // SHA-256; "" = not stored
  bool pixels = false; // whether to store the pixels of pictures without a file
};

// The source of a document that is being read, and the problems found.
struct ReadContext {
  std::string subject; // the name of the file, for messages
  // Returns the present path of a file or folder; nullopt, after recording it, if it is missing.
  std::function<std::optional<std::filesystem::path>(FileKind, const std::string& reference)> find;
  // Records a file that exists but could not be read.
  std::function<void(FileKind, const std::string& reference, const std::string& reason)> unreadable;
  std::vector<std::string> notes; // what was omitted or replaced
  std::set<std::string> maps;     // kernels with a source so far

  [[noreturn]] void fail(const std::string& at, const std::string& reason) const {
    throw BrokenFile(subject, fmt::format("{} {}", at.empty() ? "the whole" : at, reason),
                     "mend this entry, or open a copy of the file");
  }
  void note(const std::string& at, const std::string& what) { notes.push_back(at + ": " + what); }
};

// The range of a number, inclusive.
struct Bounds {
  double least = std::numeric_limits<double>::lowest(), most = std::numeric_limits<double>::max();
};

// For describe(): `S` is T, or const T when writing.
template <typename S, typename T>
concept Is = std::same_as<std::remove_const_t<S>, T>;

// The names of an enumeration's values, in order from 0; specialised beside the descriptions.
template <typename T>
inline constexpr std::array<const char*, 0> enum_names{};

// Converts values of a type. The primary template is for structs with a describe().
template <typename T>
struct JsonCodec;

class FieldWriter {
public:
  explicit FieldWriter(const WriteContext& context) : context_(&context) {}
  template <typename T>
  void operator()(const char* name, const T& value, Bounds = {}) {
    json[name] = JsonCodec<T>::write(value, *context_);
  }
  const WriteContext& context() const { return *context_; }
  Json json = Json::object();

private:
  const WriteContext* context_;
};

// The object without its null entries.
inline Json without_nulls(const Json& json) {
  Json kept = Json::object();
  for (const auto& [name, value] : json.items()) {
    if (!value.is_null()) kept[name] = value;
  }
  return kept;
}

class FieldReader {
public:
  FieldReader(const Json& json, std::string at, ReadContext& context)
      : json_(&json), at_(std::move(at)), context_(&context) {
    if (!json.is_object()) context.fail(at_, "is not an object");
  }
  // A missing entry leaves the value unchanged: older files have fewer entries.
  template <typename T>
  void operator()(const char* name, T& value, Bounds bounds = {}) {
    const Json* entry = find(name);
    if (entry == nullptr) return;
    if constexpr (requires { JsonCodec<T>::read_into(value, *entry, at(name), *context_); }) {
      JsonCodec<T>::read_into(value, *entry, at(name), *context_); // so do missing entries inside it
      return;
    }
    T read = JsonCodec<T>::read(*entry, at(name), *context_);
    if constexpr (std::is_arithmetic_v<T>) {
      const auto number = static_cast<double>(read);
      if (number < bounds.least || number > bounds.most)
        context_->fail(at(name), fmt::format("is {}, not from {} to {}", read, bounds.least, bounds.most));
    }
    value = std::move(read);
  }
  const Json* find(const char* name) {
    known_.insert(name);
    const auto found = json_->find(name);
    return found == json_->end() ? nullptr : &*found;
  }
  std::string at(const char* name) const { return at_ + "/" + name; }
  ReadContext& context() { return *context_; }
  void note_unknown() {
    for (const auto& [name, value] : json_->items()) {
      if (!known_.contains(name)) context_->note(at_ + "/" + name, "is unknown and was ignored");
    }
  }

private:
  const Json* json_;
  std::string at_;
  ReadContext* context_;
  std::set<std::string> known_;
};

class FieldSchema {
public:
  template <typename T>
  void operator()(const char* name, const T&, Bounds bounds = {}) {
    Json schema = JsonCodec<T>::schema();
    if (bounds.least > std::numeric_limits<double>::lowest()) schema["minimum"] = bounds.least;
    if (bounds.most < std::numeric_limits<double>::max()) schema["maximum"] = bounds.most;
    properties[name] = std::move(schema);
  }
  Json properties = Json::object();
};

template <typename T>
struct JsonCodec {
  static Json write(const T& value, const WriteContext& context) {
    FieldWriter fields(context);
    describe(fields, value);
    return std::move(fields.json);
  }
  static T read(const Json& json, const std::string& at, ReadContext& context) {
    T value{};
    read_into(value, json, at, context);
    return value;
  }
  static void read_into(T& value, const Json& json, const std::string& at, ReadContext& context) {
    FieldReader fields(json, at, context);
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
struct JsonCodec<bool> {
  static Json write(bool value, const WriteContext&) { return value; }
  static bool read(const Json& json, const std::string& at, ReadContext& context) {
    if (!json.is_boolean()) context.fail(at, "is neither true nor false");
    return json.get<bool>();
  }
  static Json schema() { return {{"type", "boolean"}}; }
};

template <std::integral T>
struct JsonCodec<T> {
  static Json write(T value, const WriteContext&) { return value; }
  static T read(const Json& json, const std::string& at, ReadContext& context) {
    if (!json.is_number_integer()) context.fail(at, "is not a whole number");
    const bool negative = !json.is_number_unsigned() && json.get<std::int64_t>() < 0;
    const bool fits =
        negative ? std::in_range<T>(json.get<std::int64_t>()) : std::in_range<T>(json.get<std::uint64_t>());
    if (!fits) context.fail(at, "is a number out of range");
    return json.get<T>();
  }
  static Json schema() { return {{"type", "integer"}}; }
};

template <std::floating_point T>
struct JsonCodec<T> {
  // The shortest text that identifies the float: 0.6, not 0.6000000238418579.
  static Json write(T value, const WriteContext&) { return Json::parse(fmt::format("{}", value)); }
  static T read(const Json& json, const std::string& at, ReadContext& context) {
    if (!json.is_number()) context.fail(at, "is not a number");
    return json.get<T>();
  }
  static Json schema() { return {{"type", "number"}}; }
};

template <>
struct JsonCodec<std::string> {
  static Json write(const std::string& value, const WriteContext&) { return value; }
  static std::string read(const Json& json, const std::string& at, ReadContext& context) {
    if (!json.is_string()) context.fail(at, "is not a text");
    return json.get<std::string>();
  }
  static Json schema() { return {{"type", "string"}}; }
};

template <typename T>
requires std::is_enum_v<T>
struct JsonCodec<T> {
  static Json write(T value, const WriteContext&) {
    return enum_names<T>.at(static_cast<std::size_t>(value));
  }
  static T read(const Json& json, const std::string& at, ReadContext& context) {
    const std::string name = JsonCodec<std::string>::read(json, at, context);
    std::string all;
    for (std::size_t i = 0; i < enum_names<T>.size(); ++i) {
      if (name == enum_names<T>[i]) return static_cast<T>(i);
      all += (i == 0 ? "" : ", ") + std::string(enum_names<T>[i]);
    }
    context.fail(at, fmt::format("is “{}”, none of {}", name, all));
  }
  static Json schema() { return {{"enum", enum_names<T>}}; }
};

template <typename T>
struct JsonCodec<std::optional<T>> {
  static Json write(const std::optional<T>& value, const WriteContext& context) {
    return value ? JsonCodec<T>::write(*value, context) : Json(nullptr);
  }
  static std::optional<T> read(const Json& json, const std::string& at, ReadContext& context) {
    if (json.is_null()) return std::nullopt;
    return JsonCodec<T>::read(json, at, context);
  }
  static Json schema() { return {{"anyOf", {JsonCodec<T>::schema(), Json{{"type", "null"}}}}}; }
};

template <typename Container>
struct ListCodec {
  using T = typename Container::value_type;
  static Json write(const Container& values, const WriteContext& context) {
    Json json = Json::array();
    for (const T& value : values) json.push_back(JsonCodec<T>::write(value, context));
    return json;
  }
  static Container read(const Json& json, const std::string& at, ReadContext& context) {
    if (!json.is_array()) context.fail(at, "is not a list");
    Container values;
    for (std::size_t i = 0; i < json.size(); ++i)
      values.insert(values.end(), JsonCodec<T>::read(json[i], fmt::format("{}/{}", at, i), context));
    return values;
  }
  static Json schema() { return {{"type", "array"}, {"items", JsonCodec<T>::schema()}}; }
};
template <typename T>
struct JsonCodec<std::vector<T>> : ListCodec<std::vector<T>> {};
template <typename T>
struct JsonCodec<std::set<T>> : ListCodec<std::set<T>> {};

template <typename T, std::size_t count>
struct JsonCodec<std::array<T, count>> {
  static Json write(const std::array<T, count>& values, const WriteContext& context) {
    Json json = Json::array();
    for (const T& value : values) json.push_back(JsonCodec<T>::write(value, context));
    return json;
  }
  static std::array<T, count> read(const Json& json, const std::string& at, ReadContext& context) {
    if (!json.is_array() || json.size() != count) context.fail(at, fmt::format("is not a list of {}", count));
    std::array<T, count> values;
    for (std::size_t i = 0; i < count; ++i)
      values[i] = JsonCodec<T>::read(json[i], fmt::format("{}/{}", at, i), context);
    return values;
  }
  static Json schema() {
    return {{"type", "array"}, {"items", JsonCodec<T>::schema()}, {"minItems", count}, {"maxItems", count}};
  }
};

} // namespace hydrascope::app
