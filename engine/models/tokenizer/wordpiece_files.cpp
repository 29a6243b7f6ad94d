#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/base/config_fields.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/models/tokenizer/wordpiece.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t max_tokens = 4'000'000;

// A token is written as text, or as an object with its content.
std::string token_text(const ConfigFields& fields, const std::string& key, const std::string& fallback) {
  if (!fields.has(key)) return fallback;
  if (fields.value(key).is_object()) return fields.object(key).text("content", fallback);
  return fields.text(key, fallback);
}

void put_in_vocabulary(std::vector<std::string>& vocabulary, const std::string& token, std::int64_t id) {
  const auto index = static_cast<std::size_t>(id);
  if (vocabulary.size() <= index) vocabulary.resize(index + 1);
  vocabulary[index] = token;
}

SpecialToken read_special(const ConfigFields& entry, std::int32_t id) {
  SpecialToken token;
  token.text = entry.text("content", "");
  token.id = id;
  token.single_word = entry.boolean("single_word", false);
  token.strip_left = entry.boolean("lstrip", false);
  token.strip_right = entry.boolean("rstrip", false);
  token.normalized = entry.boolean("normalized", false);
  return token;
}

void read_normalizer(const ConfigFields& fields, NormalizerOptions& options) {
  options = {false, false, false, false};
  if (!fields.has("normalizer")) return;
  const ConfigFields normalizer = fields.object("normalizer");
  if (const std::string type = normalizer.text("type", ""); type != "BertNormalizer")
    throw ForeignFile(fields.file().string(), "its normaliser is " + type + ", not BertNormalizer",
                      "use a model with BERT's tokenizer");
  options.clean_text = normalizer.boolean("clean_text", true);
  options.handle_chinese_chars = normalizer.boolean("handle_chinese_chars", true);
  options.lowercase = normalizer.boolean("lowercase", true);
  options.strip_accents = normalizer.boolean("strip_accents", options.lowercase);
}

WordPieceSettings from_tokenizer_json(const fs::path& file, const ConfigFields& config) {
  const ConfigFields fields = ConfigFields::of_file(file);
  const ConfigFields model = fields.object("model");
  const bool vocabulary_is_table = model.has("vocab") && model.value("vocab").is_object();
  // Files of old versions leave the type out.
  const std::string type = model.text("type", model.has("continuing_subword_prefix") ? "WordPiece" : "");
  if (type != "WordPiece" || !vocabulary_is_table)
    throw ForeignFile(file.string(), "is not a WordPiece tokenizer", "use a model with BERT's tokenizer");
  const ConfigFields pre_tokenizer = fields.object("pre_tokenizer");
  if (const std::string name = pre_tokenizer.text("type", ""); name != "BertPreTokenizer")
    throw ForeignFile(file.string(),
                      "its pre-tokenizer is " + (name.empty() ? "missing" : name) + ", not BertPreTokenizer",
                      "use a model with BERT's tokenizer");
  WordPieceSettings settings;
  settings.unknown = model.text("unk_token", settings.unknown);
  settings.continuation = model.text("continuing_subword_prefix", settings.continuation);
  settings.longest_word =
      static_cast<std::size_t>(model.integer("max_input_chars_per_word", 1, 1'000'000, 100));
  for (const auto& [token, id] : model.value("vocab").items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= std::uint64_t{max_tokens})
      model.fail("vocab", "gives '" + token + "' an id that is not a small whole number");
    put_in_vocabulary(settings.vocabulary, token, id.get<std::int64_t>());
  }
  if (fields.has("added_tokens") && !fields.value("added_tokens").is_array())
    fields.fail("added_tokens", "is not a list");
  if (fields.has("added_tokens")) {
    for (const auto& entry : fields.value("added_tokens")) {
      if (!entry.is_object()) fields.fail("added_tokens", "holds something that is not an object");
      const ConfigFields token(entry, file);
      const int id = token.integer("id", 0, max_tokens - 1);
      settings.special.push_back(read_special(token, id));
      put_in_vocabulary(settings.vocabulary, settings.special.back().text, id);
    }
  }
  read_normalizer(fields, settings.normalizer);
  settings.start = token_text(config, "cls_token", settings.start);
  settings.end = token_text(config, "sep_token", settings.end);
  return settings;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    // Python reads a text file with universal newlines.
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

// Japanese BERTs have a vocab.txt, too, of words that a dictionary finds, or of characters.
void refuse_japanese(const fs::path& file, const ConfigFields& config) {
  const auto model_file = file.parent_path() / "config.json"; // older ones name the class there
  const ConfigFields model = has_file(model_file) ? ConfigFields::of_file(model_file)
                                                  : ConfigFields(nlohmann::json::object(), model_file);
  const std::string kind = config.text("tokenizer_class", model.text("tokenizer_class", ""));
  const std::string words = config.text("word_tokenizer_type", "basic");
  const std::string pieces = config.text("subword_tokenizer_type", "wordpiece");
  if (!kind.starts_with("BertJapanese") && words == "basic" && pieces == "wordpiece") return;
  throw ForeignFile(
      file.string(),
      "is the vocabulary of a Japanese tokenizer (" + words + ", " + pieces + "), which is not supported",
      "use a model with BERT's tokenizer");
}

WordPieceSettings from_vocabulary(const fs::path& file, const ConfigFields& config) {
  refuse_japanese(file, config);
  WordPieceSettings settings;
  settings.vocabulary = lines_of(read_text_file(file));
  settings.unknown = token_text(config, "unk_token", settings.unknown);
  settings.start = token_text(config, "cls_token", settings.start);
  settings.end = token_text(config, "sep_token", settings.end);
  settings.normalizer.lowercase = config.boolean("do_lower_case", true);
  settings.normalizer.strip_accents = config.boolean("strip_accents", settings.normalizer.lowercase);
  settings.normalizer.handle_chinese_chars = config.boolean("tokenize_chinese_chars", true);

  const ConfigFields added = config.object("added_tokens_decoder");
  for (const auto& [key, entry] : added.values().items()) {
    if (key.empty() || key.size() > 7 || key.find_first_not_of("0123456789") != std::string::npos ||
        std::stol(key) >= max_tokens || !entry.is_object())
      config.fail("added_tokens_decoder", "has the id '" + key + "'");
    const auto id = static_cast<std::int32_t>(std::stol(key));
    settings.special.push_back(read_special(ConfigFields(entry, config.file()), id));
    put_in_vocabulary(settings.vocabulary, settings.special.back().text, id);
  }
  for (const std::string& text : {token_text(config, "pad_token", "[PAD]"), settings.unknown, settings.start,
                                  settings.end, token_text(config, "mask_token", "[MASK]")}) {
    const bool known = std::any_of(settings.special.begin(), settings.special.end(),
                                   [&](const SpecialToken& token) { return token.text == text; });
    const auto found = std::find(settings.vocabulary.begin(), settings.vocabulary.end(), text);
    if (known || found == settings.vocabulary.end()) continue;
    SpecialToken token;
    token.text = text;
    token.id = static_cast<std::int32_t>(found - settings.vocabulary.begin());
    settings.special.push_back(token);
  }
  return settings;
}

} // namespace

WordPieceSettings read_wordpiece_settings(const fs::path& folder) {
  const fs::path config_file = folder / "tokenizer_config.json";
  const ConfigFields config = has_file(config_file) ? ConfigFields::of_file(config_file)
                                                    : ConfigFields(nlohmann::json::object(), config_file);
  if (has_file(folder / "tokenizer.json")) return from_tokenizer_json(folder / "tokenizer.json", config);
  if (has_file(folder / "vocab.txt")) return from_vocabulary(folder / "vocab.txt", config);
  throw Error(folder.string(), "has neither tokenizer.json nor vocab.txt", "fetch all files of the model");
}

WordPiece load_wordpiece(const fs::path& folder) {
  return WordPiece(read_wordpiece_settings(folder), folder.string());
}

} // namespace hydrascope
