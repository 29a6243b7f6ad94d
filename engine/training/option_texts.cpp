#include "engine/training/option_texts.h"

#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "engine/attention/spec_values.h"
#include "engine/plain/error.h"

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

ChunkLengths parse_chunk_lengths(const std::string& text) {
  if (text.empty()) return {};
  const Range range = range_of(text, text, "--chunk", "write it as 512 or 16-256");
  return {range.first == range.last ? 0 : range.first, range.last};
}

} // namespace hydrascope
