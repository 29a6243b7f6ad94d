// The configurations of decoders: GPT-2's, and Llama's with those that are built alike (Mistral, Qwen2).
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "engine/base/config_fields.h"
#include "engine/base/error.h"
#include "engine/models/transformer/config.h"

namespace hydrascope {
namespace {

constexpr std::array<std::string_view, 3> llama_types{"llama", "mistral", "qwen2"};

[[noreturn]] void refuse(const ConfigFields& fields, const std::string& what, const std::string& remedy) {
  throw Error(fields.file().string(), what + " is not supported", remedy);
}

void refuse_if_set(const ConfigFields& fields, const char* key) {
  if (fields.boolean(key, false)) refuse(fields, std::string(key), "use a model without it");
}

void read_architecture(const ConfigFields& fields, ModelConfig& config) {
  if (!fields.has("architectures") || !fields.value("architectures").is_array() ||
      fields.value("architectures").empty() || !fields.value("architectures")[0].is_string())
    return;
  config.architecture = fields.value("architectures")[0].get<std::string>();
  if (config.architecture.find("Classification") != std::string::npos ||
      config.architecture.find("QuestionAnswering") != std::string::npos)
    refuse(fields, "the architecture " + config.architecture, "use the language model itself (…ForCausalLM)");
}

ModelConfig read_gpt2(const ConfigFields& fields) {
  ModelConfig config;
  config.family = "gpt2";
  config.causal = true;
  config.layers = fields.integer("n_layer", 1, ConfigLimits::layers, 12);
  config.heads = fields.integer("n_head", 1, ConfigLimits::heads, 12);
  config.width = fields.integer("n_embd", 1, ConfigLimits::width, 768);
  config.intermediate = fields.integer("n_inner", 1, ConfigLimits::intermediate, 4 * config.width);
  config.vocabulary = fields.integer("vocab_size", 1, ConfigLimits::vocabulary, 50257);
  config.max_positions = fields.integer("n_positions", 1, ConfigLimits::positions,
                                        fields.integer("n_ctx", 1, ConfigLimits::positions, 1024));
  config.activation = read_activation(fields, "activation_function", "gelu_new");
  config.layer_norm_epsilon = fields.real("layer_norm_epsilon", 0, 1, 1e-5);
  config.tied_head = fields.boolean("tie_word_embeddings", true);
  if (!fields.boolean("scale_attn_weights", true))
    refuse(fields, "scale_attn_weights false", "use a model that scales by 1/√d");
  refuse_if_set(fields, "scale_attn_by_inverse_layer_idx");
  refuse_if_set(fields, "add_cross_attention");
  return config;
}

// transformers writes rope_theta and rope_scaling, from version 5 on rope_parameters with both.
RotaryConfig read_rotary(const ConfigFields& fields, const int max_positions) {
  const bool joined = fields.has("rope_parameters");
  const ConfigFields scaling = fields.object(joined ? "rope_parameters" : "rope_scaling");
  RotaryConfig rotary;
  rotary.base =
      (joined && scaling.has("rope_theta") ? scaling : fields).real("rope_theta", 1, 1e12, 10'000.0);
  const std::string type = scaling.text(scaling.has("rope_type") ? "rope_type" : "type", "default");
  if (type == "default") return rotary;
  if (type == "linear") {
    rotary.scaling = RotaryConfig::Scaling::linear;
    rotary.factor = scaling.real("factor", 1e-3, 1e6);
  } else if (type == "llama3") {
    rotary.scaling = RotaryConfig::Scaling::llama3;
    rotary.factor = scaling.real("factor", 1e-3, 1e6);
    rotary.low_frequency_factor = scaling.real("low_freq_factor", 1e-3, 1e6);
    rotary.high_frequency_factor = scaling.real("high_freq_factor", 1e-3, 1e6);
    rotary.original_positions =
        scaling.real("original_max_position_embeddings", 1, 1e9, static_cast<double>(max_positions));
    if (rotary.high_frequency_factor <= rotary.low_frequency_factor)
      scaling.fail("high_freq_factor", "is not above low_freq_factor");
  } else {
    refuse(fields, "rope_scaling \"" + type + "\"", "use a model with the scaling linear or llama3, or none");
  }
  if (fields.real("partial_rotary_factor", 0, 1, scaling.real("partial_rotary_factor", 0, 1, 1.0)) != 1.0)
    refuse(fields, "partial_rotary_factor", "use a model that rotates all features");
  return rotary;
}

// Within its window sliding attention is full attention: the model is limited to so many tokens.
void limit_to_window(const ConfigFields& fields, const std::string& type, ModelConfig& config) {
  std::optional<int> window;
  if (type == "mistral" && (fields.has("sliding_window") || !fields.values().contains("sliding_window")))
    window = fields.integer("sliding_window", 1, ConfigLimits::positions, 4096);
  if (type == "qwen2" && fields.boolean("use_sliding_window", false))
    window = fields.integer("sliding_window", 1, ConfigLimits::positions, 4096);
  if (window) config.max_positions = std::min(config.max_positions, *window);
}

ModelConfig read_llama(const ConfigFields& fields, const std::string& type) {
  ModelConfig config;
  config.family = "llama";
  config.causal = config.rms_norm = config.gated_mlp = true;
  config.layers = fields.integer("num_hidden_layers", 1, ConfigLimits::layers, 32);
  config.heads = fields.integer("num_attention_heads", 1, ConfigLimits::heads, 32);
  config.width = fields.integer("hidden_size", 1, ConfigLimits::width, 4096);
  config.key_heads =
      fields.integer("num_key_value_heads", 1, ConfigLimits::heads, type == "mistral" ? 8 : config.heads);
  config.intermediate = fields.integer("intermediate_size", 1, ConfigLimits::intermediate, 11008);
  config.vocabulary = fields.integer("vocab_size", 1, ConfigLimits::vocabulary, 32000);
  config.max_positions = fields.integer("max_position_embeddings", 1, ConfigLimits::positions, 2048);
  config.activation = read_activation(fields, "hidden_act", "silu");
  config.layer_norm_epsilon = fields.real("rms_norm_eps", 0, 1, 1e-6);
  config.tied_head = fields.boolean("tie_word_embeddings", false);
  config.qkv_bias = type == "qwen2" || fields.boolean("attention_bias", false);
  config.output_bias = type != "qwen2" && fields.boolean("attention_bias", false);
  config.mlp_bias = fields.boolean("mlp_bias", false);
  if (config.width % config.heads == 0 &&
      fields.integer("head_dim", 1, ConfigLimits::width, config.width / config.heads) !=
          config.width / config.heads)
    refuse(fields, "head_dim other than hidden_size / num_attention_heads", "use a model of the usual width");
  if (config.heads % config.key_heads != 0)
    fields.fail("num_key_value_heads",
                fmt::format("is {}, which does not divide the {} heads", config.key_heads, config.heads));
  config.rotary = read_rotary(fields, config.max_positions);
  limit_to_window(fields, type, config);
  return config;
}

} // namespace

bool is_decoder_type(const std::string& type) {
  return type == "gpt2" || std::ranges::find(llama_types, type) != llama_types.end();
}

ModelConfig read_decoder(const ConfigFields& fields, const std::string& type) {
  ModelConfig config = type == "gpt2" ? read_gpt2(fields) : read_llama(fields, type);
  config.prefix_tokens = 0;
  if (config.width % config.heads != 0)
    fields.fail(type == "gpt2" ? "n_head" : "num_attention_heads",
                fmt::format("is {}, which does not divide the width {}", config.heads, config.width));
  if (config.rotary && config.width / config.heads % 2 != 0)
    fields.fail("hidden_size", "leaves heads of an odd width, which rotary positions cannot rotate");
  read_architecture(fields, config);
  return config;
}

} // namespace hydrascope
