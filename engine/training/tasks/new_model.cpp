#include "engine/training/tasks/new_model.h"

#include <cmath>
#include <map>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/models/tokenizer/byte_pair.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/encoder.h"
#include "engine/models/transformer/hub_names.h"
#include "engine/training/loop/training_files.h"

namespace hydrascope::training {
namespace {

using nlohmann::json;

constexpr double embedding_deviation = 0.02;

void write_json(const std::filesystem::path& file, const json& document) {
  write_file_atomically(file, text_of_json(document, 1) + "\n");
}

json labels_json(const std::vector<std::string>& labels) {
  json table = json::object();
  for (std::size_t id = 0; id < labels.size(); ++id) table[std::to_string(id)] = labels[id];
  return table;
}

json gpt2_config(const NewModel& model) {
  json config = {{"model_type", "gpt2"},
                 {"architectures", json::array({"GPT2LMHeadModel"})},
                 {"n_layer", model.layers},
                 {"n_head", model.heads},
                 {"n_embd", model.width},
                 {"n_inner", model.intermediate},
                 {"n_positions", model.positions},
                 {"vocab_size", model.vocabulary},
                 {"activation_function", "gelu_new"},
                 {"layer_norm_epsilon", 1e-5},
                 {"tie_word_embeddings", true}};
  // transformers' defaults name tokens of GPT-2's own vocabulary.
  config["bos_token_id"] = model.begin_token >= 0 ? json(model.begin_token) : json();
  config["eos_token_id"] = model.end_token >= 0 ? json(model.end_token) : json();
  return config;
}

json classifier_config(const NewModel& model) {
  json config = {{"num_hidden_layers", model.layers},
                 {"num_attention_heads", model.heads},
                 {"hidden_size", model.width},
                 {"intermediate_size", model.intermediate},
                 {"hidden_act", "gelu"},
                 {"layer_norm_eps", 1e-12},
                 {"id2label", labels_json(model.labels)}};
  if (model.family == "bert") {
    config["model_type"] = "bert";
    config["architectures"] = json::array({"BertForSequenceClassification"});
    config["vocab_size"] = model.vocabulary;
    config["max_position_embeddings"] = model.positions;
    config["type_vocab_size"] = 2;
    return config;
  }
  config["model_type"] = "vit";
  config["architectures"] = json::array({"ViTForImageClassification"});
  config["image_size"] = model.side;
  config["patch_size"] = model.patch;
  config["num_channels"] = 3;
  return config;
}

json processor_config(const NewModel& model) {
  return {{"image_processor_type", "ViTImageProcessor"},
          {"do_resize", true},
          {"size", {{"height", model.side}, {"width", model.side}}},
          {"resample", 2},
          {"do_grayscale", model.grey},
          {"do_rescale", true},
          {"rescale_factor", 1.0 / 255},
          {"do_normalize", true},
          {"image_mean", {0.5, 0.5, 0.5}},
          {"image_std", {0.5, 0.5, 0.5}}};
}

// The parameters outside the blocks.
void expect_ends(const NewModel& model, ExpectedParameters& expected) {
  const std::int64_t width = model.width, classes = std::ssize(model.labels);
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    expected[name] = {std::move(shape), true};
  };
  const auto add_affine = [&](const std::string& name, std::vector<std::int64_t> shape) {
    add(name + ".bias", {shape.front()});
    add(name + ".weight", std::move(shape));
  };
  if (model.family == "gpt2") {
    add("embed_tokens.weight", {model.vocabulary, width});
    add("embed_positions.weight", {model.positions, width});
    add_affine("norm", {width});
    return;
  }
  add_affine("classifier", {classes, width});
  if (model.family == "bert") {
    add("embeddings.word_embeddings.weight", {model.vocabulary, width});
    add("embeddings.position_embeddings.weight", {model.positions, width});
    add("embeddings.token_type_embeddings.weight", {2, width});
    add_affine("embeddings.LayerNorm", {width});
    add_affine("pooler.dense", {width, width});
    return;
  }
  const std::int64_t patches = model.side / model.patch;
  add("embeddings.cls_token", {1, 1, width});
  add("embeddings.position_embeddings", {1, 1 + patches * patches, width});
  add_affine("embeddings.patch_embeddings.projection", {width, 3, model.patch, model.patch});
  add_affine("layernorm", {width});
}

TensorMap random_parameters(const NewModel& model, const ModelConfig& config, const std::uint64_t seed) {
  ExpectedParameters expected;
  expect_layers(config, expected);
  expect_ends(model, expected);
  const LayerNames names = layer_names(config);
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto ends_block = [&](const std::string& name) {
    return name.ends_with(std::string(names.attention_output) + ".weight") ||
           name.ends_with(std::string(names.mlp_out) + ".weight");
  };
  TensorMap parameters;
  for (const auto& [name, parameter] : expected) {
    const auto& shape = parameter.shape;
    if (name.ends_with(".bias")) {
      if (parameter.required) parameters[name] = at::zeros(shape);
    } else if (shape.size() == 1) {
      parameters[name] = at::ones(shape);
    } else {
      const bool embedding = name.starts_with("embed") && name.find("projection") == std::string::npos;
      std::int64_t inputs = 1;
      for (std::size_t axis = 1; axis < shape.size(); ++axis) inputs *= shape[axis];
      double deviation = embedding ? embedding_deviation : 1 / std::sqrt(3.0 * static_cast<double>(inputs));
      if (model.family == "gpt2" && ends_block(name)) deviation /= std::sqrt(2.0 * model.layers);
      parameters[name] = at::randn(shape, generator) * deviation;
    }
  }
  return parameters;
}

// The text that stands for each byte in byte-level vocabularies: itself if it can be seen, else a letter from
// U+0100 on (GPT-2, Radford et al. 2019).
std::string letter_of(const int byte) {
  const auto seen = [](const int value) {
    return (value >= 33 && value <= 126) || (value >= 161 && value <= 172) || value >= 174;
  };
  int point = byte;
  if (!seen(byte)) {
    point = 256;
    for (int earlier = 0; earlier < byte; ++earlier) point += seen(earlier) ? 0 : 1;
  }
  std::string text;
  if (point < 128) {
    text += static_cast<char>(point);
  } else {
    text += static_cast<char>(0xC0 | (point >> 6));
    text += static_cast<char>(0x80 | (point & 0x3F));
  }
  return text;
}

json special_token(const int id, const std::string& text) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// tokenizer.json of a token for each byte, after these special ones.
json byte_tokenizer(const std::vector<std::string>& special) {
  json vocabulary = json::object(), added = json::array();
  int id = 0;
  for (const std::string& text : special) {
    vocabulary[text] = id;
    added.push_back(special_token(id++, text));
  }
  for (int byte = 0; byte < 256; ++byte) vocabulary[letter_of(byte)] = id++;
  const json level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", level},
          {"post_processor", nullptr},
          {"decoder", level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", json::array()}}}};
}

} // namespace

void write_weights(const std::filesystem::path& folder, const std::string& family,
                   const TensorMap& parameters, std::map<std::string, std::string> metadata) {
  metadata["format"] = "pt";
  write_tensors(folder / "model.safetensors", hub_tensors(family, parameters), metadata);
}

void write_new_model(const std::filesystem::path& folder, const NewModel& model, const std::uint64_t seed) {
  if (model.width % model.heads != 0)
    throw UsageError("--heads", fmt::format("{} do not divide the width {}", model.heads, model.width),
                     "choose others with --width and --heads");
  write_json(folder / "config.json", model.family == "gpt2" ? gpt2_config(model) : classifier_config(model));
  if (model.family == "vit") write_json(folder / "preprocessor_config.json", processor_config(model));
  write_weights(folder, model.family, random_parameters(model, read_config(folder), seed));
}

int write_byte_tokenizer(const std::filesystem::path& folder) {
  const std::string end = "<|endoftext|>";
  write_json(folder / "tokenizer.json", byte_tokenizer({end}));
  write_json(folder / "tokenizer_config.json",
             {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"bos_token", end}, {"eos_token", end}});
  return 257;
}

int write_byte_classifier_tokenizer(const std::filesystem::path& folder) {
  json tokenizer = byte_tokenizer({"[PAD]", "[CLS]", "[SEP]"});
  const auto token = [](const char* text) { return json{{"SpecialToken", {{"id", text}, {"type_id", 0}}}}; };
  const auto text = [](const char* name, const int type) {
    return json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  const auto entry = [](const char* name, const int id) {
    return json{{"id", name}, {"ids", json::array({id})}, {"tokens", json::array({name})}};
  };
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {token("[CLS]"), text("A", 0), token("[SEP]")}},
      {"pair", {token("[CLS]"), text("A", 0), token("[SEP]"), text("B", 1), token("[SEP]")}},
      {"special_tokens", {{"[CLS]", entry("[CLS]", 1)}, {"[SEP]", entry("[SEP]", 2)}}}};
  write_json(folder / "tokenizer.json", tokenizer);
  write_json(folder / "tokenizer_config.json", {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                                {"cls_token", "[CLS]"},
                                                {"sep_token", "[SEP]"},
                                                {"pad_token", "[PAD]"}});
  return 259;
}

int write_listops_tokenizer(const std::filesystem::path& folder) {
  std::vector<std::string> words{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                                 "[MIN",  "[MAX",  "[MED",  "[SM",   "]"};
  for (int digit = 0; digit < 10; ++digit) words.push_back(std::to_string(digit));
  std::string vocabulary;
  for (const std::string& word : words) vocabulary += word + "\n";
  write_file_atomically(folder / "vocab.txt", vocabulary);
  // With their bracket the operators are no words to WordPiece.
  json added = json::object();
  for (int id = 0; id < 9; ++id) {
    json token = special_token(id, words[static_cast<std::size_t>(id)]);
    token.erase("id");
    token["special"] = id < 5;
    added[std::to_string(id)] = std::move(token);
  }
  write_json(folder / "tokenizer_config.json", {{"tokenizer_class", "BertTokenizer"},
                                                {"do_lower_case", false},
                                                {"strip_accents", false},
                                                {"added_tokens_decoder", added}});
  return static_cast<int>(words.size());
}

CopiedTokenizer copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to) {
  const ModelConfig config = read_config(from);
  bool any = false;
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json",
                           "special_tokens_map.json", "added_tokens.json"}) {
    if (!std::filesystem::exists(from / name)) continue;
    std::filesystem::copy_file(from / name, to / name, std::filesystem::copy_options::overwrite_existing);
    any = true;
  }
  if (!any || !config.causal)
    throw Error(from.string(), "has no tokenizer of a decoder",
                "name another model with --tokenizer, or bytes");
  const BytePair tokenizer = load_byte_pair(from);
  return {config.vocabulary, tokenizer.begin().value_or(-1), tokenizer.end().value_or(-1)};
}

} // namespace hydrascope::training
