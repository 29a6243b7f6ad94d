#include "engine/models/transformer/config.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "engine/base/capture.h"
#include "engine/base/config_fields.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/models/hub/hub_cache.h"

namespace hydrascope {
namespace {

// id2label with the ids 0 … n−1, or `num_labels`. transformers omits both for its default of two classes.
void read_labels(const ConfigFields& fields, ModelConfig& config) {
  if (!fields.has("id2label")) {
    config.classes = fields.integer("num_labels", 0, ConfigLimits::classes, 0);
    return;
  }
  const auto& table = fields.value("id2label");
  if (!table.is_object() || table.empty()) fields.fail("id2label", "is not a table from id to label");
  config.labels.assign(table.size(), "");
  config.classes = static_cast<int>(table.size());
  for (const auto& [key, label] : table.items()) {
    const bool digits = !key.empty() && key.size() < 9 &&
                        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    const std::size_t id = digits ? static_cast<std::size_t>(std::stoul(key)) : table.size();
    if (id >= table.size())
      fields.fail("id2label", "has the id \"" + key + "\", which is not below its size");
    config.labels[id] = label.is_string() ? label.get<std::string>() : label.dump();
  }
}

void read_image_sizes(const ConfigFields& fields, ModelConfig& config, int default_patch) {
  const auto patch = fields.size("patch_size", 1, ConfigLimits::patch, default_patch);
  const auto image = fields.size("image_size", 1, ConfigLimits::image, 224);
  config.patch_height = patch[0];
  config.patch_width = patch[1];
  config.image_height = image[0];
  config.image_width = image[1];
  if (image[0] < patch[0] || image[1] < patch[1]) fields.fail("image_size", "is smaller than patch_size");
  if (fields.integer("num_channels", 1, 1024, 3) != 3)
    fields.fail("num_channels", "is not 3: only colour pictures are supported");
}

void check_heads(const ConfigFields& fields, const ModelConfig& config, const char* key) {
  if (config.width % config.heads != 0)
    fields.fail(key, fmt::format("is {}, which does not divide the width {}", config.heads, config.width));
}

ModelConfig read_transformer(const ConfigFields& fields, const std::string& family) {
  ModelConfig config;
  config.family = family;
  config.layers = fields.integer("num_hidden_layers", 1, ConfigLimits::layers, 12);
  config.heads = fields.integer("num_attention_heads", 1, ConfigLimits::heads, 12);
  config.width = fields.integer("hidden_size", 1, ConfigLimits::width, 768);
  check_heads(fields, config, "num_attention_heads");
  config.activation = read_activation(fields, "hidden_act", "gelu");
  config.layer_norm_epsilon = fields.real("layer_norm_eps", 0, 1, family == "dinov2" ? 1e-6 : 1e-12);
  config.qkv_bias = fields.boolean("qkv_bias", true);
  if (fields.has("architectures") && fields.value("architectures").is_array() &&
      !fields.value("architectures").empty() && fields.value("architectures")[0].is_string())
    config.architecture = fields.value("architectures")[0].get<std::string>();
  read_labels(fields, config);
  config.independent_labels = fields.text("problem_type", "") == "multi_label_classification";
  return config;
}

ModelConfig read_vision(const ConfigFields& fields, const std::string& family) {
  ModelConfig config = read_transformer(fields, family);
  read_image_sizes(fields, config, family == "dinov2" ? 14 : 16);
  // Hugging Face's DeiT always has a distillation token; its classifier may ignore it.
  config.prefix_tokens = family == "deit" ? 2 : 1;
  if (family == "deit" && config.architecture == "DeiTForImageClassificationWithTeacher")
    config.family = "deit-distilled";
  if (family != "dinov2") {
    config.intermediate = fields.integer("intermediate_size", 1, ConfigLimits::intermediate, 3072);
    return config;
  }
  const int hidden = static_cast<int>(config.width * fields.real("mlp_ratio", 0.01, 64, 4.0));
  config.gated_mlp = fields.boolean("use_swiglu_ffn", false);
  if (config.gated_mlp) config.activation = Activation::silu; // whatever hidden_act says
  // SwiGLU keeps two thirds, rounded up to a multiple of 8 (transformers, Dinov2SwiGLUFFN).
  config.intermediate = config.gated_mlp ? (hidden * 2 / 3 + 7) / 8 * 8 : hidden;
  if (config.intermediate < 1) fields.fail("mlp_ratio", "leaves no hidden unit");
  return config;
}

ModelConfig read_bert(const ConfigFields& fields) {
  ModelConfig config = read_transformer(fields, "bert");
  config.prefix_tokens = 0;
  config.intermediate = fields.integer("intermediate_size", 1, ConfigLimits::intermediate, 3072);
  config.vocabulary = fields.integer("vocab_size", 1, ConfigLimits::vocabulary, 30522);
  config.max_positions = fields.integer("max_position_embeddings", 2, ConfigLimits::positions, 512);
  config.token_types = fields.integer("type_vocab_size", 1, 1024, 2);
  const std::string positions = fields.text("position_embedding_type", "absolute");
  if (positions != "absolute")
    throw Error(fields.file().string(), "position_embedding_type \"" + positions + "\" is not supported",
                "use a BERT with absolute positions");
  if (fields.boolean("is_decoder", false))
    throw Error(fields.file().string(), "is_decoder is set: causal BERT is not supported", "use an encoder");
  return config;
}

// The widths of timm's named sizes, for files without model_args.
struct TimmSize {
  const char* name;
  int width, heads, layers;
};
constexpr TimmSize timm_sizes[] = {{"_tiny_", 192, 3, 12},    {"_small_", 384, 6, 12},
                                   {"_medium_", 512, 8, 12},  {"_base_", 768, 12, 12},
                                   {"_large_", 1024, 16, 24}, {"_huge_", 1280, 16, 32}};

int number_after(const std::string& text, const std::string& word, int fallback) {
  const auto at = text.find(word);
  if (at == std::string::npos) return fallback;
  int value = 0;
  for (auto i = at + word.size(); i < text.size() && text[i] >= '0' && text[i] <= '9' && value < 100000; ++i)
    value = 10 * value + (text[i] - '0');
  return value > 0 ? value : fallback;
}

void read_timm_preparation(const ConfigFields& fields, ModelConfig& config) {
  const ConfigFields pretrained =
      fields.object(fields.has("pretrained_cfg") ? "pretrained_cfg" : "default_cfg");
  TimmPreparation timm;
  timm.crop_fraction = pretrained.real("crop_pct", 0.05, 1.0, timm.crop_fraction);
  timm.interpolation = pretrained.text("interpolation", timm.interpolation);
  timm.mean = pretrained.channels("mean", timm.mean);
  timm.deviation = pretrained.divisors("std", timm.deviation);
  config.timm = timm;
}

ModelConfig read_timm(const ConfigFields& fields, const std::string& architecture) {
  const bool deit = architecture.starts_with("deit_") || architecture.starts_with("deit3_");
  if (!deit && !architecture.starts_with("vit_"))
    throw ForeignFile(fields.file().string(), "the architecture \"" + architecture + "\" is not supported",
                      "use a vit_… or deit_… model");
  ModelConfig config;
  const bool distilled = architecture.find("_distilled_") != std::string::npos;
  config.family = distilled ? "deit-distilled" : deit ? "deit" : "vit";
  config.architecture = architecture;
  config.prefix_tokens = distilled ? 2 : 1;
  const auto* size = std::find_if(std::begin(timm_sizes), std::end(timm_sizes), [&](const TimmSize& entry) {
    return architecture.find(entry.name) != std::string::npos;
  });
  const auto named = [&](int TimmSize::*member) {
    return size == std::end(timm_sizes) ? std::optional<int>() : std::optional<int>(size->*member);
  };
  const ConfigFields arguments = fields.object("model_args");
  config.width =
      arguments.integer("embed_dim", 1, ConfigLimits::width,
                        fields.has("num_features") ? fields.integer("num_features", 1, ConfigLimits::width)
                                                   : named(&TimmSize::width));
  config.layers = arguments.integer("depth", 1, ConfigLimits::layers, named(&TimmSize::layers));
  config.heads = arguments.integer("num_heads", 1, ConfigLimits::heads, named(&TimmSize::heads));
  check_heads(arguments, config, "num_heads");
  config.intermediate = static_cast<int>(config.width * arguments.real("mlp_ratio", 0.01, 64, 4.0));
  if (config.intermediate < 1) arguments.fail("mlp_ratio", "leaves no hidden unit");
  config.layer_norm_epsilon = 1e-6; // timm's default for vision transformers
  // Of the architectures with a class token vit_base_patch16_224_miil alone leaves these biases out.
  config.qkv_bias = arguments.boolean("qkv_bias", architecture.find("_miil") == std::string::npos);
  const ConfigFields pretrained =
      fields.object(fields.has("pretrained_cfg") ? "pretrained_cfg" : "default_cfg");
  int side = number_after(architecture, "patch16_", number_after(architecture, "patch32_", 224));
  const int patch_side = number_after(architecture, "_patch", 16);
  if (side > ConfigLimits::image || patch_side > ConfigLimits::patch)
    fields.fail("architecture",
                fmt::format("names pictures of more than {} pixels or patches of more than {}",
                            ConfigLimits::image, ConfigLimits::patch));
  if (pretrained.has("input_size") && pretrained.value("input_size").is_array() &&
      pretrained.value("input_size").size() == 3 && pretrained.value("input_size")[1].is_number_integer()) {
    const auto own = pretrained.value("input_size")[1].get<std::int64_t>();
    if (own < 1 || own > ConfigLimits::image)
      pretrained.fail("input_size", fmt::format("is not between 1 and {}", ConfigLimits::image));
    side = static_cast<int>(own);
  }
  const auto image = arguments.size("img_size", 1, ConfigLimits::image, side);
  const auto patch = arguments.size("patch_size", 1, ConfigLimits::patch, patch_side);
  config.image_height = image[0];
  config.image_width = image[1];
  config.patch_height = patch[0];
  config.patch_width = patch[1];
  // Sizes that are named elsewhere have not been checked.
  if (image[0] > ConfigLimits::image || image[1] > ConfigLimits::image)
    arguments.fail("img_size", fmt::format("is larger than {}", ConfigLimits::image));
  if (patch[0] > ConfigLimits::patch || patch[1] > ConfigLimits::patch)
    arguments.fail("patch_size", fmt::format("is larger than {}", ConfigLimits::patch));
  if (image[0] < patch[0] || image[1] < patch[1]) arguments.fail("img_size", "is smaller than patch_size");
  config.classes = fields.integer("num_classes", 0, ConfigLimits::classes, 1000);
  if (fields.has("label_names") && fields.value("label_names").is_array())
    for (const auto& label : fields.value("label_names"))
      config.labels.push_back(label.is_string() ? label.get<std::string>() : label.dump());
  read_timm_preparation(fields, config);
  return config;
}

} // namespace

Activation read_activation(const ConfigFields& fields, const std::string& key, const std::string& initial) {
  static const std::map<std::string, Activation> known{
      {"gelu", Activation::gelu},           {"gelu_python", Activation::gelu},
      {"gelu_new", Activation::gelu_tanh},  {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"gelu_fast", Activation::gelu_tanh}, {"quick_gelu", Activation::quick_gelu},
      {"relu", Activation::relu},           {"silu", Activation::silu},
      {"swish", Activation::silu}};
  const std::string name = fields.text(key, initial);
  const auto found = known.find(name);
  if (found == known.end())
    throw Error(fields.file().string(), key + " \"" + name + "\" is not supported",
                "use a model with gelu, gelu_new, quick_gelu, relu or silu");
  return found->second;
}

ModelConfig read_config(const std::filesystem::path& folder) {
  const auto file = folder / "config.json";
  if (!has_file(file)) throw Error(folder.string(), "has no config.json", "name a Hugging Face model folder");
  std::string stamp = model_stamp(folder); // before anything is read: a file may change meanwhile
  const ConfigFields fields = ConfigFields::of_file(file);
  const std::string type = fields.text("model_type", "");
  ModelConfig config;
  if (type == "vit" || type == "deit" || type == "dinov2")
    config = read_vision(fields, type);
  else if (type == "bert")
    config = read_bert(fields);
  else if (is_decoder_type(type))
    config = read_decoder(fields, type);
  else if (type.empty() && fields.has("architecture"))
    config = read_timm(fields, fields.text("architecture", ""));
  else
    throw ForeignFile(
        file.string(),
        type.empty() ? "names no model_type" : "the model_type \"" + type + "\" is not supported",
        "use a vit, deit, dinov2, bert, gpt2, llama, mistral or qwen2 model");
  config.file = file;
  config.stamp = std::move(stamp);
  return config;
}

namespace {

// Whether models are read from files of this name: others beside them, as adapters, figures and sessions, may
// come and go. Shards may have any name.
bool is_of_a_model(const std::filesystem::path& file) {
  constexpr std::array<std::string_view, 10> names{
      "config.json",    "generation_config.json", "model.safetensors.index.json",
      "merges.txt",     "added_tokens.json",      "preprocessor_config.json",
      "tokenizer.json", "tokenizer_config.json",  "vocab.json",
      "vocab.txt"};
  const std::string name = file.filename().string();
  if (file.extension() == ".safetensors") {
    std::error_code none;
    return name.starts_with("model") ||
           !std::filesystem::exists(file.parent_path() / "model.safetensors", none);
  }
  return std::ranges::find(names, name) != names.end();
}

bool is_of_a_capture(const std::filesystem::path& file) {
  const std::filesystem::path kind = file.extension();
  return kind == ".json" || kind == ".txt" || kind == ".safetensors";
}

} // namespace

std::string model_stamp(const std::filesystem::path& folder) {
  const std::filesystem::path place = capture_path(folder);
  std::error_code none;
  if (!std::filesystem::is_directory(place, none)) return file_stamp(place);
  const auto is_read = std::filesystem::exists(place / "config.json", none) ? is_of_a_model : is_of_a_capture;
  std::vector<std::string> lines;
  for (const std::filesystem::path& entry : entries_of(place))
    if (is_read(entry)) lines.push_back(entry.filename().string() + ' ' + file_stamp(entry) + '\n');
  std::ranges::sort(lines);
  std::string all;
  for (const std::string& line : lines) all += line;
  return sha256_of_text(all);
}

bool has_other_classifier(const ModelConfig& config) {
  return config.architecture == "BertForTokenClassification" ||
         config.architecture == "BertForMultipleChoice";
}

ModelInfo info_of(const ModelConfig& config, const std::filesystem::path& folder) {
  ModelInfo info;
  info.folder = folder;
  info.stamp = config.stamp;
  info.name = repository_of_snapshot(folder); // the folder's own name is a commit's hash
  if (info.name.empty())
    info.name =
        folder.filename().empty() ? folder.parent_path().filename().string() : folder.filename().string();
  info.family = config.family;
  info.input = config.vocabulary > 0 ? InputKind::text : InputKind::image;
  info.layers = config.layers;
  info.heads = config.heads;
  info.width = config.width;
  info.key_heads = config.kv_heads();
  info.causal = config.causal;
  info.vocabulary = config.causal ? config.vocabulary : 0;
  info.patch_size = config.patch_height;
  info.image_size = config.image_height;
  info.prefix_tokens = config.prefix_tokens;
  info.max_tokens = config.max_positions;
  info.has_classifier = config.timm ? config.classes > 0
                                    : config.architecture.find("Classification") != std::string::npos &&
                                          !has_other_classifier(config);
  if (info.has_classifier) info.labels = config.labels;
  info.independent_labels = config.independent_labels;
  return info;
}

} // namespace hydrascope
