// Parts of reading a byte-pair tokenizer's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/config_fields.h"
#include "engine/models/tokenizer/byte_pair.h"

namespace hydrascope {

[[noreturn]] void broken_tokenizer(const std::filesystem::path& file,
                                   const std::string& reason); // BrokenFile
[[noreturn]] void foreign_tokenizer(const std::filesystem::path& file,
                                    const std::string& reason); // ForeignFile

// The file as JSON. Throws Error, BrokenFile (too large, not an object, nested too deeply).
ConfigFields tokenizer_fields(const std::filesystem::path& file);

// A token in a message: in quotes, long ones cut.
std::string quoted_token(std::string_view token);

// Tokens and their ids. All functions throw BrokenFile naming the file.
class TokenTable {
public:
  // `table`: the model's vocabulary, {token: id}, its tokens written in the alphabet of byte-level
  // tokenizers.
  TokenTable(const nlohmann::json& table, std::filesystem::path file);

  std::optional<std::int32_t> find(const std::string& token) const;
  bool holds(std::int64_t id) const { return id >= 0 && id < std::ssize(ids_); }
  // Adds a token that is matched in the text as it stands. It may be in the vocabulary already, under the
  // same id.
  void add(const std::string& token, std::int32_t id);
  // The vocabulary by id, which must be whole: each id from 0 on has one token.
  std::vector<BytePairSettings::Entry> entries() const;

private:
  std::filesystem::path file_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_set<std::int32_t> added_; // ids of tokens that the model's vocabulary lacks
};

// A list of texts "left right" or of pairs [left, right].
std::vector<BytePairMerge> merges_of_list(const nlohmann::json& list, const TokenTable& table,
                                          const std::filesystem::path& file);
// The lines of merges.txt.
std::vector<BytePairMerge> merges_of_text(std::string_view text, const TokenTable& table,
                                          const std::filesystem::path& file);

// An entry of added_tokens or added_tokens_decoder; adds it to the table.
SpecialToken read_added_token(const ConfigFields& entry, std::int32_t id, TokenTable& table);

// tokenizer.json's settings, but for begin and ends. `table` is to be made of its vocabulary.
BytePairSettings settings_of_tokenizer_json(const ConfigFields& fields, TokenTable& table);
// Its vocabulary. Throws ForeignFile if the tokenizer is no byte-pair encoding.
const nlohmann::json& vocabulary_of_tokenizer_json(const ConfigFields& fields);

} // namespace hydrascope
