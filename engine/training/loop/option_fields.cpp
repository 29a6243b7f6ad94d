#include "engine/training/loop/option_fields.h"

#include <filesystem>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/parameters.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/tsv.h"

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

Objective parse_objective(const std::string& text) {
  if (text.empty()) return Objective::by_model;
  if (text == "classification") return Objective::classification;
  if (text == "regression") return Objective::regression;
  if (text == "next-token") return Objective::next_token;
  throw UsageError("--objective", fmt::format("\"{}\" is not what it takes", text),
                   "write classification, regression or next-token");
}

std::string objective_text(const Objective objective) {
  switch (objective) {
    case Objective::by_model: return {};
    case Objective::classification: return "classification";
    case Objective::regression: return "regression";
    case Objective::next_token: return "next-token";
  }
  return {};
}

std::vector<std::string> names_or_file(const std::string& text, const std::string& option) {
  std::vector<std::string> names;
  if (std::filesystem::is_regular_file(text)) {
    for (const TsvLine& line : read_tsv(text))
      if (!line.cells.front().empty()) names.push_back(line.cells.front());
    return names;
  }
  if (text.find('/') != std::string::npos)
    throw UsageError(option, fmt::format("there is no file {}", text),
                     "name a file or list the names with commas");
  for (const std::string_view name : split(text, ','))
    if (!name.empty()) names.emplace_back(name);
  return names;
}

namespace option_fields {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<fs::path>;
using Texts = std::vector<std::string>;

} // namespace

OptionValue option_value(const fs::path& field) { return field.string(); }
OptionValue option_value(const Files& field) {
  Texts texts;
  for (const fs::path& file : field) texts.push_back(file.string());
  return texts;
}
OptionValue option_value(const Texts& field) { return fmt::format("{}", fmt::join(field, ",")); }
OptionValue option_value(const std::optional<TrainedParts>& field) {
  return field ? trained_parts_text(*field) : std::string();
}
OptionValue option_value(const std::optional<LowRank>& field) {
  return field ? low_rank_text(*field) : std::string();
}
OptionValue option_value(const ChunkLengths& field) { return chunk_lengths_text(field); }
OptionValue option_value(const Objective& field) { return objective_text(field); }

void assign(fs::path& field, const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    field = *text;
    return;
  }
  const auto& files = std::get<Texts>(value);
  if (files.size() > 1) throw UsageError("data", "several files where one is taken", "name one");
  field = files.empty() ? fs::path() : fs::path(files.front());
}
void assign(Files& field, const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    field = text->empty() ? Files() : Files{*text};
    return;
  }
  const auto& files = std::get<Texts>(value);
  field.assign(files.begin(), files.end());
}
void assign(Texts& field, const OptionValue& value) {
  const auto& text = std::get<std::string>(value);
  field = text.empty() ? Texts() : names_or_file(text, "--classes");
}
void assign(std::optional<TrainedParts>& field, const OptionValue& value) {
  const auto& text = std::get<std::string>(value);
  field.reset();
  if (!text.empty()) field = parse_trained_parts(text);
}
void assign(std::optional<LowRank>& field, const OptionValue& value) {
  const auto& text = std::get<std::string>(value);
  field.reset();
  if (!text.empty()) field = parse_low_rank(text);
}
void assign(ChunkLengths& field, const OptionValue& value) {
  field = parse_chunk_lengths(std::get<std::string>(value));
}
void assign(Objective& field, const OptionValue& value) {
  field = parse_objective(std::get<std::string>(value));
}

} // namespace option_fields

} // namespace hydrascope
