// A model's configuration as read from config.json (Hugging Face's or timm's). Plain types.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/models/model_info.h"

namespace hydrascope {

class ConfigFields;

enum class Activation { identity, gelu, gelu_tanh, quick_gelu, relu, silu };

// Image pre-processing of timm's pretrained_cfg.
struct TimmPreparation {
  double crop_fraction = 0.875; // crop_pct
  std::string interpolation = "bicubic";
  std::array<double, 3> mean{0.5, 0.5, 0.5}, deviation{0.5, 0.5, 0.5};
};

// Rotary position embeddings of q and k.
struct RotaryConfig {
  // How the angles are scaled for contexts longer than those of the first training.
  enum class Scaling {
    none,
    linear, // divided by `factor` (Chen et al. 2023)
    llama3  // long wavelengths alone, as Llama 3.1
  };
  double base = 10'000;
  Scaling scaling = Scaling::none;
  double factor = 1;
  double low_frequency_factor = 1, high_frequency_factor = 4, original_positions = 8192; // llama3
};

struct ModelConfig {
  std::filesystem::path file;
  std::string stamp;  // as ModelInfo::stamp
  std::string family; // as ModelInfo::family
  int layers = 0, heads = 0, width = 0;
  int key_heads = 0;    // heads of keys and values, each for heads/key_heads heads of queries; 0: as many
  int intermediate = 0; // width of the MLP's hidden layer
  Activation activation = Activation::gelu;
  double layer_norm_epsilon = 1e-12;
  bool qkv_bias = true, output_bias = true, mlp_bias = true;
  bool gated_mlp = false;          // SwiGLU: the activation of a second projection scales the first
  bool layer_scale = false;        // ViT and DeiT by timm: LayerScale, as DINOv2; the weights tell
  std::string architecture;        // the first of `architectures`, may be empty
  std::vector<std::string> labels; // id2label in order of id; empty without
  int classes = 0;                 // 0: unknown
  bool independent_labels = false; // as ModelInfo::independent_labels
  // images
  int patch_height = 0, patch_width = 0, image_height = 0, image_width = 0, prefix_tokens = 1;
  std::optional<TimmPreparation> timm;
  // text
  int vocabulary = 0, max_positions = 0, token_types = 0;
  // decoders
  bool causal = false;                // a token attends to itself and those before it
  std::optional<RotaryConfig> rotary; // none: positions are embedded with the tokens
  bool rms_norm = false;              // RMSNorm in place of LayerNorm
  bool tied_head = false;             // the logits' weights are the token embeddings

  int kv_heads() const { return key_heads > 0 ? key_heads : heads; }
};

// Reads and checks config.json; the values of gpt2 and the llama kind are read by decoder_config.cpp. Throws
// Error (missing), ForeignFile (no known model_type or architecture), BrokenFile (not JSON, missing or
// invalid values).
ModelConfig read_config(const std::filesystem::path& folder);

// BertForTokenClassification and BertForMultipleChoice: their classifier reads each token, or one text of
// several.
bool has_other_classifier(const ModelConfig& config);

// The facts for the window and the commands.
ModelInfo info_of(const ModelConfig& config, const std::filesystem::path& folder);

// The configurations of decoders: model_type gpt2, llama, mistral, qwen2. Throws as read_config().
bool is_decoder_type(const std::string& type);
ModelConfig read_decoder(const ConfigFields& fields, const std::string& type);

// Throws Error naming hidden_act or what the file calls it.
Activation read_activation(const ConfigFields& fields, const std::string& key, const std::string& initial);

// Limits beyond which a configuration is considered an error.
struct ConfigLimits {
  static constexpr int layers = 512, heads = 512, width = 32768, intermediate = 262144;
  static constexpr int patch = 512, image = 16384, vocabulary = 4'000'000, positions = 10'000'000;
  static constexpr int classes = 1'000'000;
};

} // namespace hydrascope
