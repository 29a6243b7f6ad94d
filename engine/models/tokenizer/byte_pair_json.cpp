// What stands in tokenizer.json, as Hugging Face's tokenizers library writes it.
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/models/tokenizer/byte_pair_parts.h"

namespace hydrascope {
namespace {

using nlohmann::json;

// The object's entries but for the long tables, which would be copied for nothing.
ConfigFields without_tables(const ConfigFields& fields, const std::string& key) {
  json small = json::object();
  if (fields.has(key)) {
    if (!fields.value(key).is_object()) fields.fail(key, "is not an object");
    for (const auto& [name, value] : fields.value(key).items())
      if (name != "vocab" && name != "merges") small[name] = value;
  }
  return ConfigFields(std::move(small), fields.file());
}

// Parts of one kind, be it one, a sequence or none: "type" of each decides.
std::vector<ConfigFields> components_of(const ConfigFields& fields, const std::string& key,
                                        const char* list) {
  std::vector<ConfigFields> parts;
  if (!fields.has(key)) return parts;
  const ConfigFields part = fields.object(key);
  if (part.text("type", "") != "Sequence") return {part};
  if (!part.has(list) || !part.value(list).is_array()) part.fail(list, "of the " + key + " is not a list");
  for (const json& entry : part.value(list)) {
    if (!entry.is_object()) part.fail(list, "of the " + key + " holds something that is not an object");
    const ConfigFields wrapped(json::object({{key, entry}}), fields.file());
    for (ConfigFields& inner : components_of(wrapped, key, list)) parts.push_back(std::move(inner));
  }
  return parts;
}

void check_model(const ConfigFields& model) {
  const std::filesystem::path& file = model.file();
  if (model.boolean("byte_fallback", false))
    foreign_tokenizer(file,
                      "uses byte_fallback, SentencePiece's way of writing bytes, which is not supported");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model.text(key, "").empty())
      foreign_tokenizer(file, fmt::format("uses {}, which byte-level tokenizers do not have", key));
  if (model.real("dropout", 0.0, 1.0, 0.0) > 0.0)
    foreign_tokenizer(file, "uses dropout, which gives other tokens each time");
}

void read_normalizer(const ConfigFields& fields, BytePairSettings& settings) {
  for (const ConfigFields& part : components_of(fields, "normalizer", "normalizers")) {
    if (const std::string type = part.text("type", ""); type != "NFC")
      foreign_tokenizer(fields.file(),
                        fmt::format("its normalizer is {}; only NFC is supported", quoted_token(type)));
    settings.compose = true;
  }
}

SplitBehavior behavior_of(const ConfigFields& step) {
  const std::string name = step.text("behavior", "");
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  step.fail("behavior", fmt::format("of a Split is {}, which is none", quoted_token(name)));
}

PatternStep split_of(const ConfigFields& step) {
  const ConfigFields pattern = step.object("pattern");
  PatternStep result{.pattern = pattern.text("Regex", ""),
                     .behavior = behavior_of(step),
                     .invert = step.boolean("invert", false)};
  if (result.pattern.empty()) result.pattern = literal_pattern(pattern.text("String", ""));
  if (result.pattern.empty()) step.fail("pattern", "of a Split is neither a Regex nor a String with a text");
  return result;
}

void read_pre_tokenizer(const ConfigFields& fields, BytePairSettings& settings) {
  std::vector<PreTokenizerStep>& steps = settings.pre_tokenizer;
  const auto refuse = [&](const std::string& reason) { foreign_tokenizer(fields.file(), reason); };
  for (const ConfigFields& step : components_of(fields, "pre_tokenizer", "pretokenizers")) {
    const std::string type = step.text("type", "");
    if (!steps.empty() && std::holds_alternative<ByteLevelStep>(steps.back()))
      refuse(fmt::format("its pre_tokenizer has {} behind ByteLevel, which is not supported",
                         quoted_token(type)));
    if (type == "ByteLevel") {
      steps.emplace_back(
          ByteLevelStep{step.boolean("add_prefix_space", true), step.boolean("use_regex", true)});
    } else if (type == "Digits") {
      steps.emplace_back(DigitsStep{step.boolean("individual_digits", false)});
    } else if (type == "Split") {
      steps.emplace_back(split_of(step));
    } else {
      refuse(fmt::format("its pre_tokenizer has {}; only ByteLevel, Digits and Split are supported",
                         quoted_token(type)));
    }
  }
  if (steps.empty() || !std::holds_alternative<ByteLevelStep>(steps.back()))
    refuse("its pre_tokenizer does not end with ByteLevel");
}

void check_decoder(const ConfigFields& fields) {
  const std::vector<ConfigFields> parts = components_of(fields, "decoder", "decoders");
  if (parts.size() != 1 || parts.front().text("type", "") != "ByteLevel")
    foreign_tokenizer(fields.file(),
                      fmt::format("its decoder is {}; only ByteLevel is supported",
                                  parts.size() == 1 ? quoted_token(parts.front().text("type", ""))
                                  : parts.empty()   ? "missing"
                                                    : "a sequence"));
}

// The ids of a template's special token.
std::vector<std::int32_t> template_ids(const ConfigFields& processor, const std::string& name,
                                       const TokenTable& table) {
  const ConfigFields tokens = processor.object("special_tokens");
  const ConfigFields token = tokens.object(name);
  if (!token.has("ids") || !token.value("ids").is_array())
    processor.fail("special_tokens", fmt::format("does not list the ids of {}", quoted_token(name)));
  std::vector<std::int32_t> ids;
  for (const json& id : token.value("ids")) {
    if (!id.is_number_unsigned() || !table.holds(static_cast<std::int64_t>(id.get<std::uint64_t>())))
      processor.fail("special_tokens", fmt::format("gives {} an id that no token has", quoted_token(name)));
    ids.push_back(static_cast<std::int32_t>(id.get<std::uint64_t>()));
  }
  return ids;
}

void read_template(const ConfigFields& processor, const TokenTable& table, BytePairSettings& settings) {
  if (!processor.has("single") || !processor.value("single").is_array())
    processor.fail("single", "of the TemplateProcessing is not a list");
  std::vector<std::int32_t> before, after;
  int texts = 0;
  for (const json& entry : processor.value("single")) {
    if (!entry.is_object()) processor.fail("single", "holds something that is not an object");
    const ConfigFields piece(entry, processor.file());
    if (piece.has("Sequence")) {
      ++texts;
    } else {
      for (const std::int32_t id :
           template_ids(processor, piece.object("SpecialToken").text("id", ""), table))
        (texts == 0 ? before : after).push_back(id);
    }
  }
  if (texts != 1) processor.fail("single", fmt::format("holds the text {} times, not once", texts));
  settings.before.insert(settings.before.begin(), before.begin(), before.end());
  settings.after.insert(settings.after.end(), after.begin(), after.end());
}

void read_post_processor(const ConfigFields& fields, const TokenTable& table, BytePairSettings& settings) {
  for (const ConfigFields& processor : components_of(fields, "post_processor", "processors")) {
    const std::string type = processor.text("type", "");
    if (type == "TemplateProcessing")
      read_template(processor, table, settings);
    else if (type != "ByteLevel") // that one changes no ids
      foreign_tokenizer(fields.file(),
                        fmt::format("its post_processor has {}; only ByteLevel and TemplateProcessing "
                                    "are supported",
                                    quoted_token(type)));
  }
}

} // namespace

const json& vocabulary_of_tokenizer_json(const ConfigFields& fields) {
  const ConfigFields model = without_tables(fields, "model");
  const bool has_merges = fields.has("model") && fields.value("model").contains("merges");
  // Files of old versions leave the type out.
  if (const std::string type = model.text("type", has_merges ? "BPE" : ""); type != "BPE")
    foreign_tokenizer(fields.file(),
                      fmt::format("its model is {}, not byte-pair encoding (BPE)", quoted_token(type)));
  if (!fields.value("model").contains("vocab")) fields.fail("model", "has no vocab");
  return fields.value("model").at("vocab");
}

BytePairSettings settings_of_tokenizer_json(const ConfigFields& fields, TokenTable& table) {
  BytePairSettings settings;
  const ConfigFields model = without_tables(fields, "model");
  check_model(model);
  read_normalizer(fields, settings);
  read_pre_tokenizer(fields, settings);
  check_decoder(fields);
  if (!fields.value("model").contains("merges")) fields.fail("model", "has no merges");
  settings.merges = merges_of_list(fields.value("model").at("merges"), table, fields.file());
  settings.ignore_merges = model.boolean("ignore_merges", false);
  settings.fuse_unknown = model.boolean("fuse_unk", false);
  if (const std::string unknown = model.text("unk_token", ""); !unknown.empty()) {
    settings.unknown = table.find(unknown);
    if (!settings.unknown)
      broken_tokenizer(fields.file(),
                       fmt::format("its unk_token {} is not in the vocabulary", quoted_token(unknown)));
  }
  if (fields.has("added_tokens")) {
    if (!fields.value("added_tokens").is_array()) fields.fail("added_tokens", "is not a list");
    for (const json& entry : fields.value("added_tokens")) {
      if (!entry.is_object()) fields.fail("added_tokens", "holds something that is not an object");
      const ConfigFields token(entry, fields.file());
      settings.added.push_back(read_added_token(token, token.integer("id", 0, 4'000'000), table));
    }
  }
  settings.vocabulary = table.entries();
  read_post_processor(fields, table, settings);
  return settings;
}

} // namespace hydrascope
