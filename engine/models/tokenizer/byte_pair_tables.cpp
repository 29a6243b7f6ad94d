// Vocabulary and merges of a byte-pair tokenizer's files.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/models/tokenizer/byte_pair_parts.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_file = 256'000'000; // bytes; the largest in use have 35 MB
constexpr std::uint64_t id_limit = 4'000'000;
const char* const fetch_again = "fetch the model's files again";

// Byte-level tokenizers write each byte as one printable character: itself, or one from U+0100 on. By
// character (U+0000 to U+0143) the byte that it stands for, or −1.
constexpr std::array<int, 0x144> bytes_by_character() {
  std::array<int, 0x144> bytes{};
  bytes.fill(-1);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    bytes[static_cast<std::size_t>(printable ? byte : next++)] = byte;
  }
  return bytes;
}

// The bytes of a token of the vocabulary; those of its text if that is not written in the alphabet.
BytePairSettings::Entry entry_of(const std::string& token) {
  static constexpr std::array<int, 0x144> bytes = bytes_by_character();
  BytePairSettings::Entry entry{{}, true};
  for (std::size_t at = 0; at < token.size();) {
    const CodePoint point = code_point_at(token, at);
    const int byte = point.value < bytes.size() ? bytes[point.value] : -1;
    if (byte < 0) return {token, false};
    entry.bytes += static_cast<char>(byte);
    at += point.length;
  }
  return entry;
}

class MergeList {
public:
  MergeList(const TokenTable& table, const fs::path& file) : table_(table), file_(file) {}

  void add(const std::string& left, const std::string& right) {
    const std::int32_t first = find(left), second = find(right);
    merges_.push_back({first, second, find(left + right)});
  }
  void add(std::string_view line) {
    const std::size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos)
      broken_tokenizer(file_, fmt::format("merge {} is {}, not two tokens with a space between",
                                          merges_.size() + 1, quoted_token(line)));
    add(std::string(line.substr(0, space)), std::string(line.substr(space + 1)));
  }
  std::vector<BytePairMerge> take() { return std::move(merges_); }

private:
  std::int32_t find(const std::string& token) const {
    const auto id = table_.find(token);
    if (!id)
      broken_tokenizer(file_, fmt::format("merge {} needs the token {}, which the vocabulary lacks",
                                          merges_.size() + 1, quoted_token(token)));
    return *id;
  }

  const TokenTable& table_;
  const fs::path& file_;
  std::vector<BytePairMerge> merges_;
};

} // namespace

void broken_tokenizer(const fs::path& file, const std::string& reason) {
  throw BrokenFile(file.string(), reason, fetch_again);
}

void foreign_tokenizer(const fs::path& file, const std::string& reason) {
  throw ForeignFile(file.string(), reason,
                    "use a model with a byte-level tokenizer like GPT-2's, SmolLM2's, Llama 3's or Qwen2's");
}

ConfigFields tokenizer_fields(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (!error && size > largest_file)
    broken_tokenizer(file, "has " + bytes_text(static_cast<double>(size)) + ", more than any tokenizer");
  return ConfigFields::of_file(file);
}

std::string quoted_token(std::string_view token) {
  std::size_t length = std::min<std::size_t>(token.size(), 40);
  while (length < token.size() && (static_cast<unsigned char>(token[length]) & 0xC0) == 0x80) --length;
  return fmt::format("'{}{}'", token.substr(0, length), length < token.size() ? "…" : "");
}

TokenTable::TokenTable(const nlohmann::json& table, fs::path file) : file_(std::move(file)) {
  if (!table.is_object()) broken_tokenizer(file_, "its vocabulary is not a table of tokens and ids");
  ids_.reserve(table.size());
  for (const auto& [token, id] : table.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= id_limit)
      broken_tokenizer(file_,
                       fmt::format("gives {} an id that is not a small whole number", quoted_token(token)));
    ids_.emplace(token, static_cast<std::int32_t>(id.get<std::uint64_t>()));
  }
}

std::optional<std::int32_t> TokenTable::find(const std::string& token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

void TokenTable::add(const std::string& token, std::int32_t id) {
  const auto [entry, fresh] = ids_.emplace(token, id);
  if (fresh)
    added_.insert(id);
  else if (entry->second != id)
    broken_tokenizer(file_,
                     fmt::format("gives {} the ids {} and {}", quoted_token(token), entry->second, id));
}

std::vector<BytePairSettings::Entry> TokenTable::entries() const {
  std::vector<BytePairSettings::Entry> result(ids_.size());
  std::vector<const std::string*> names(ids_.size(), nullptr);
  for (const auto& [token, id] : ids_) {
    if (!holds(id)) continue; // then a lower id has no token
    const std::string*& name = names[static_cast<std::size_t>(id)];
    if (name != nullptr)
      broken_tokenizer(
          file_, fmt::format("gives the id {} to two tokens, {} and {}", id,
                             quoted_token(std::min(*name, token)), quoted_token(std::max(*name, token))));
    name = &token;
    result[static_cast<std::size_t>(id)] =
        added_.contains(id) ? BytePairSettings::Entry{token, false} : entry_of(token);
  }
  const auto missing = std::find(names.begin(), names.end(), nullptr);
  if (missing != names.end())
    broken_tokenizer(
        file_, fmt::format("has {} tokens, but none with the id {}", names.size(), missing - names.begin()));
  return result;
}

std::vector<BytePairMerge> merges_of_list(const nlohmann::json& list, const TokenTable& table,
                                          const fs::path& file) {
  if (!list.is_array()) broken_tokenizer(file, "its merges are not a list");
  MergeList merges(table, file);
  for (const nlohmann::json& merge : list) {
    if (merge.is_string()) {
      merges.add(std::string_view(merge.get_ref<const std::string&>()));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.add(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
    } else {
      broken_tokenizer(file, "has a merge that is neither a text nor a pair of texts");
    }
  }
  return merges.take();
}

std::vector<BytePairMerge> merges_of_text(std::string_view text, const TokenTable& table,
                                          const fs::path& file) {
  MergeList merges(table, file);
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) merges.add(line);
  }
  return merges.take();
}

SpecialToken read_added_token(const ConfigFields& entry, std::int32_t id, TokenTable& table) {
  SpecialToken token;
  token.text = entry.text("content", "");
  if (token.text.empty()) entry.fail("content", fmt::format("of the added token {} is missing or empty", id));
  token.id = id;
  token.single_word = entry.boolean("single_word", false);
  token.strip_left = entry.boolean("lstrip", false);
  token.strip_right = entry.boolean("rstrip", false);
  token.special = entry.boolean("special", false);
  token.normalized = entry.boolean("normalized", !token.special);
  table.add(token.text, id);
  return token;
}

} // namespace hydrascope
