// The texts of tools/golden/lines.py, and the hashes that golden files hold of what is made of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/paths.h"
#include "engine/base/text.h"

namespace hydrascope::test {

// FNV-1a.
inline std::uint32_t fnv32(std::string_view bytes) {
  std::uint32_t value = 2166136261U;
  for (const char c : bytes) value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
  return value;
}
inline std::uint64_t fnv64(std::string_view bytes) {
  std::uint64_t value = 14695981039346656037U;
  for (const char c : bytes) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return value;
}

// The lines of tools/golden/lines.py: the same tables, the same congruential generator.
class LineGenerator {
public:
  explicit LineGenerator(const std::filesystem::path& file)
      : tables_(nlohmann::json::parse(read_text_file(file))) {
    state_ = tables_.at("seed").get<std::uint64_t>();
  }
  std::vector<std::string> lines() {
    std::vector<std::string> result;
    const auto count = tables_.at("lines").get<std::size_t>();
    while (result.size() < count) {
      std::string text = this->text();
      if (draw(25) == 0) text += "\t" + this->text();
      result.push_back(std::move(text));
    }
    return result;
  }

private:
  std::uint64_t draw(std::uint64_t count) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 33) % count;
  }
  std::string characters(const nlohmann::json& segment) {
    if (segment.contains("choices")) return segment["choices"][draw(segment["choices"].size())];
    std::uint64_t total = 0;
    for (const auto& range : segment["ranges"])
      total += range[1].get<std::uint64_t>() - range[0].get<std::uint64_t>() + 1;
    const auto shortest = segment["min"].get<std::uint64_t>();
    const std::uint64_t length = shortest + draw(segment["max"].get<std::uint64_t>() - shortest + 1);
    std::string result;
    for (std::uint64_t i = 0; i < length; ++i) {
      std::uint64_t index = draw(total);
      for (const auto& range : segment["ranges"]) {
        const std::uint64_t size = range[1].get<std::uint64_t>() - range[0].get<std::uint64_t>() + 1;
        if (index < size) {
          append_code_point(result, static_cast<char32_t>(range[0].get<std::uint64_t>() + index));
          break;
        }
        index -= size;
      }
    }
    return result;
  }
  std::string segment() {
    std::uint64_t total = 0;
    for (const auto& segment : tables_["segments"]) total += segment["weight"].get<std::uint64_t>();
    std::uint64_t index = draw(total);
    for (const auto& segment : tables_["segments"]) {
      const auto weight = segment["weight"].get<std::uint64_t>();
      if (index < weight) return characters(segment);
      index -= weight;
    }
    return {};
  }
  std::string text() {
    const std::uint64_t count = draw(9);
    std::string result;
    if (draw(12) == 0) result.assign(1 + draw(3), ' ');
    for (std::uint64_t i = 0; i < count; ++i) {
      result += segment();
      result += tables_["separators"][draw(tables_["separators"].size())].get<std::string>();
    }
    return result;
  }

  nlohmann::json tables_;
  std::uint64_t state_ = 0;
};

} // namespace hydrascope::test
