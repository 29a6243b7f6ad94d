#include "engine/training/option_texts.h"

#include <charconv>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "engine/plain/error.h"

namespace hydrascope {
namespace {

int whole_number(const std::string_view text, const char* option, const std::string& item,
                 const char* remedy) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw UsageError(option, fmt::format("\"{}\" is not what it takes", item), remedy);
  return value;
}

struct Range {
  int first = 0, last = 0;
};

// "8" or "8-11".
Range range_of(const std::string& item, const std::string& text, const char* option, const char* remedy) {
  const std::string_view view = item;
  const auto dash = view.find('-');
  Range range;
  range.first = whole_number(view.substr(0, dash), option, text, remedy);
  range.last = dash == std::string_view::npos ? range.first
                                              : whole_number(view.substr(dash + 1), option, text, remedy);
  if (range.last < range.first || range.last > 100'000)
    throw UsageError(option, fmt::format("\"{}\" is no range", item), remedy);
  return range;
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

ChunkLengths parse_chunk_lengths(const std::string& text) {
  if (text.empty()) return {};
  const Range range = range_of(text, text, "--chunk", "write it as 512 or 16-256");
  return {range.first == range.last ? 0 : range.first, range.last};
}

} // namespace hydrascope
