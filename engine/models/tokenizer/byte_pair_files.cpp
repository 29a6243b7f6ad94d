#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/models/tokenizer/byte_pair_parts.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

ConfigFields optional_fields(const fs::path& file) {
  return has_file(file) ? tokenizer_fields(file) : ConfigFields(json::object(), file);
}

// A token is written as text, or as an object with its content; empty if it is not named.
std::string token_name(const ConfigFields& config, const std::string& key) {
  if (!config.has(key)) return {};
  if (config.value(key).is_object()) return config.object(key).text("content", "");
  return config.text(key, "");
}

// ---- vocab.json and merges.txt, without tokenizer.json: GPT-2's
// ------------------------------------------------------

void read_added_tokens(const fs::path& folder, const ConfigFields& config, TokenTable& table,
                       std::vector<SpecialToken>& added) {
  const ConfigFields decoder = config.object("added_tokens_decoder");
  for (const auto& [key, entry] : decoder.values().items()) {
    const auto id = whole_number(key);
    if (!id || !entry.is_object()) config.fail("added_tokens_decoder", "has the id " + quoted_token(key));
    added.push_back(read_added_token(ConfigFields(entry, config.file()), *id, table));
  }
  const ConfigFields older = optional_fields(folder / "added_tokens.json");
  for (const auto& [token, id] : older.values().items())
    if (!table.find(token))
      added.push_back(read_added_token(ConfigFields(json::object({{"content", token}}), older.file()),
                                       older.integer(token, 0, 4'000'000), table));
  // GPT-2's own files name no special token.
  for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    const std::string name = config.has(key) ? token_name(config, key) : "<|endoftext|>";
    const bool known =
        std::ranges::any_of(added, [&](const SpecialToken& token) { return token.text == name; });
    if (const auto id = table.find(name); id && !known)
      added.push_back({.text = name, .id = *id, .special = true});
  }
}

// The token that `asked` puts at an end of each text; none if it is null.
std::vector<std::int32_t> token_at_end(const ConfigFields& config, const char* asked, const std::string& key,
                                       const TokenTable& table) {
  if (!config.boolean(asked, false)) return {};
  if (config.values().contains(key) && !config.has(key)) return {};
  const std::string name = config.has(key) ? token_name(config, key) : "<|endoftext|>";
  const auto id = table.find(name);
  if (!id) config.fail(key, quoted_token(name) + " is not in the vocabulary");
  return {*id};
}

BytePairSettings settings_of_tables(const fs::path& folder, const ConfigFields& config) {
  const std::string kind = config.text("tokenizer_class", "GPT2Tokenizer");
  if (!kind.starts_with("GPT2Tokenizer"))
    throw ForeignFile(
        folder.string(),
        "its tokenizer is a " + quoted_token(kind) + ", whose rules vocab.json and merges.txt do not hold",
        "fetch the model's tokenizer.json too, or make it with transformers' save_pretrained");
  const fs::path file = folder / "vocab.json", merges_file = folder / "merges.txt";
  const ConfigFields vocabulary = tokenizer_fields(file);
  TokenTable table(vocabulary.values(), file);
  BytePairSettings settings;
  settings.merges = merges_of_text(read_text_file(merges_file), table, merges_file);
  settings.pre_tokenizer = {ByteLevelStep{config.boolean("add_prefix_space", false), true}};
  read_added_tokens(folder, config, table, settings.added);
  settings.vocabulary = table.entries();
  settings.before = token_at_end(config, "add_bos_token", "bos_token", table);
  settings.after = token_at_end(config, "add_eos_token", "eos_token", table);
  return settings;
}

// ---- Which tokens begin and end a text
// -------------------------------------------------------------------------------

using Ids = std::vector<std::int32_t>;

std::optional<std::int32_t> id_of(const std::string& name, const BytePairSettings& settings) {
  if (name.empty()) return std::nullopt;
  for (const SpecialToken& token : settings.added)
    if (token.text == name) return token.id;
  for (std::size_t i = 0; i < settings.vocabulary.size(); ++i)
    if (settings.vocabulary[i].bytes == name) return static_cast<std::int32_t>(i);
  return std::nullopt;
}

// One id or a list of them. A configuration may name ids that its tokenizer lacks: they can do no harm.
Ids ids_of(const ConfigFields& config, const std::string& key, const BytePairSettings& settings) {
  Ids ids;
  if (!config.has(key)) return ids;
  const json& value = config.value(key);
  for (const json& id : value.is_array() ? value : json::array({value})) {
    if (!id.is_number_integer()) config.fail(key, "is neither an id nor a list of ids");
    const auto number = id.get<std::int64_t>();
    if (number >= 0 && number < std::ssize(settings.vocabulary))
      ids.push_back(static_cast<std::int32_t>(number));
  }
  return ids;
}

void read_begin_and_ends(const fs::path& folder, const ConfigFields& tokenizer, BytePairSettings& settings) {
  const ConfigFields generation = optional_fields(folder / "generation_config.json");
  const ConfigFields model = optional_fields(folder / "config.json");
  const auto find = [&](const char* name, const char* key) {
    Ids ids;
    if (const auto id = id_of(token_name(tokenizer, name), settings)) ids.push_back(*id);
    for (const std::int32_t id : ids_of(generation.has(key) ? generation : model, key, settings))
      if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
    return ids;
  };
  if (const Ids begins = find("bos_token", "bos_token_id"); !begins.empty()) settings.begin = begins.front();
  settings.ends = find("eos_token", "eos_token_id");
}

} // namespace

bool has_byte_pair(const fs::path& folder) {
  const fs::path file = folder / "tokenizer.json";
  if (!has_file(file)) return has_file(folder / "vocab.json") && has_file(folder / "merges.txt");
  const ConfigFields fields = tokenizer_fields(file);
  if (!fields.has("model") || !fields.value("model").is_object()) return false;
  const json& model = fields.value("model");
  return model.contains("type") ? model.at("type") == "BPE" : model.contains("merges");
}

BytePairSettings read_byte_pair_settings(const fs::path& folder) {
  const ConfigFields config = optional_fields(folder / "tokenizer_config.json");
  BytePairSettings settings;
  if (const fs::path file = folder / "tokenizer.json"; has_file(file)) {
    const ConfigFields fields = tokenizer_fields(file);
    TokenTable table(vocabulary_of_tokenizer_json(fields), file);
    settings = settings_of_tokenizer_json(fields, table);
  } else if (has_file(folder / "vocab.json") && has_file(folder / "merges.txt")) {
    settings = settings_of_tables(folder, config);
  } else {
    throw Error(folder.string(), "has neither tokenizer.json nor vocab.json with merges.txt",
                "fetch all files of the model");
  }
  read_begin_and_ends(folder, config, settings);
  return settings;
}

BytePair load_byte_pair(const fs::path& folder) {
  return BytePair(read_byte_pair_settings(folder), folder.string());
}

std::pair<std::int32_t, std::int32_t> tokens_at_both_ends(const BytePair& tokens, const fs::path& folder) {
  const std::vector<BytePairToken> around = tokens.encode("", true);
  if (around.size() != 2)
    throw BrokenFile(folder.string(), "its tokenizer adds no token at both ends of a text, as BERT reads it",
                     "check that tokenizer and weights belong together");
  return {around.front().id, around.back().id};
}

} // namespace hydrascope
