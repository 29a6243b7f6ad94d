// Reading checked values from a configuration's JSON. All errors are BrokenFile and name the file and the
// field.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace hydrascope {

class ConfigFields {
public:
  ConfigFields(nlohmann::json values, std::filesystem::path file);
  // Parses a file that must hold a JSON object. Throws Error, BrokenFile.
  static ConfigFields of_file(const std::filesystem::path& file);

  bool has(const std::string& key) const; // present and not null
  const nlohmann::json& value(const std::string& key) const { return values_.at(key); }
  const nlohmann::json& values() const { return values_; }
  const std::filesystem::path& file() const { return file_; }

  // A whole number within [low, high]; without a fallback the field is required.
  int integer(const std::string& key, std::int64_t low, std::int64_t high,
              std::optional<int> fallback = {}) const;
  double real(const std::string& key, double low, double high, std::optional<double> fallback = {}) const;
  bool boolean(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  // One number or [height, width].
  std::array<int, 2> size(const std::string& key, std::int64_t low, std::int64_t high,
                          std::optional<int> fallback = {}) const;
  // One number (for all three channels) or three.
  std::array<double, 3> channels(const std::string& key, const std::array<double, 3>& fallback) const;
  // The same of numbers to divide by: finite, and none of them 0.
  std::array<double, 3> divisors(const std::string& key, const std::array<double, 3>& fallback) const;
  // A nested object; empty if it is absent.
  ConfigFields object(const std::string& key) const;

  // Throws BrokenFile: "FILE: KEY REASON".
  [[noreturn]] void fail(const std::string& key, const std::string& reason) const;

private:
  int checked_integer(const std::string& key, const nlohmann::json& value, std::int64_t low,
                      std::int64_t high) const;

  nlohmann::json values_;
  std::filesystem::path file_;
};

} // namespace hydrascope
