#include "engine/training/loop/option_texts.h"

#include <filesystem>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/parameters.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

struct Range {
  int first = 0, last = 0;
};

// "8" or "8-11".
Range range_of(const std::string_view item, const std::string& text, const char* option, const char* remedy) {
  const auto dash = item.find('-');
  const auto first = whole_number(item.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : whole_number(item.substr(dash + 1));
  if (!first || !last) throw UsageError(option, fmt::format("\"{}\" is not what it takes", text), remedy);
  if (*last < *first || *last > 100'000)
    throw UsageError(option, fmt::format("\"{}\" is no range", item), remedy);
  return {*first, *last};
}

} // namespace

TrainedParts parse_trained_parts(const std::string& text) {
  const char* const option = "--train-layers";
  const char* const remedy = "write it as 8-11,head or 10-11.attention,head";
  TrainedParts parts;
  parts.head = false;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    if (item == "head") {
      parts.head = true;
      continue;
    }
    if (item == "embeddings") {
      parts.embeddings = true;
      continue;
    }
    constexpr std::string_view attention = ".attention";
    const bool only = item.ends_with(attention);
    if (only) item.resize(item.size() - attention.size());
    const Range range = range_of(item, text, option, remedy);
    for (int layer = range.first; layer <= range.last; ++layer)
      (only ? parts.attention : parts.layers).push_back(layer);
  }
  return parts;
}

std::string trained_parts_text(const TrainedParts& parts) {
  std::vector<std::string> items;
  for (const int layer : parts.layers) items.push_back(std::to_string(layer));
  for (const int layer : parts.attention) items.push_back(fmt::format("{}.attention", layer));
  if (parts.head) items.emplace_back("head");
  if (parts.embeddings) items.emplace_back("embeddings");
  return fmt::format("{}", fmt::join(items, ","));
}

LowRank parse_low_rank(const std::string& text) {
  LowRank update;
  for (const std::string_view item : split(text, ',')) {
    const auto equals = item.find('=');
    const std::string_view name = trimmed(item.substr(0, equals));
    const std::string_view number = equals == std::string_view::npos ? "" : item.substr(equals + 1);
    const int value = whole_number(number).value_or(0);
    if (value < 1 || (name != "rank" && name != "alpha"))
      throw UsageError("--lora", fmt::format("\"{}\" is not what it takes", text),
                       "write it as rank=8,alpha=16");
    if (name == "rank")
      update.rank = value;
    else
      update.alpha = value;
  }
  return update;
}

std::string low_rank_text(const LowRank& update) {
  return fmt::format("rank={},alpha={}", update.rank, update.alpha);
}

ChunkLengths parse_chunk_lengths(const std::string& text) {
  if (text.empty()) return {};
  const Range range = range_of(text, text, "--chunk", "write it as 512 or 16-256");
  return {range.first == range.last ? 0 : range.first, range.last};
}

std::string chunk_lengths_text(const ChunkLengths& chunk) {
  if (chunk.most <= 0) return {};
  return chunk.least > 0 ? fmt::format("{}-{}", chunk.least, chunk.most) : std::to_string(chunk.most);
}

std::vector<std::string> names_or_file(const std::string& text, const std::string& option) {
  const bool file = std::filesystem::is_regular_file(text);
  if (!file && text.find('/') != std::string::npos)
    throw UsageError(option, fmt::format("there is no file {}", text),
                     "name a file or list the names with commas");
  std::istringstream source(file ? read_text_file(text) : text);
  std::vector<std::string> names;
  for (std::string name; std::getline(source, name, file ? '\n' : ',');) {
    name = name.substr(0, name.find_first_of("\t\r"));
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

} // namespace hydrascope
