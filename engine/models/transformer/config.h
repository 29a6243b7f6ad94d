// A model's configuration as read from config.json (Hugging Face's or timm's). Plain types.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/models/model_info.h"

namespace hydrascope {

enum class Activation { identity, gelu, gelu_tanh, quick_gelu, relu, silu };

// Image pre-processing of timm's pretrained_cfg.
struct TimmPreparation {
  double crop_fraction = 0.875; // crop_pct
  std::string interpolation = "bicubic";
  std::array<double, 3> mean{0.5, 0.5, 0.5}, deviation{0.5, 0.5, 0.5};
};

struct ModelConfig {
  std::filesystem::path file;
  std::string family; // as ModelInfo::family
  int layers = 0, heads = 0, width = 0;
  int intermediate = 0; // width of the MLP's hidden layer
  Activation activation = Activation::gelu;
  double layer_norm_epsilon = 1e-12;
  bool qkv_bias = true;
  std::string architecture;        // the first of `architectures`, may be empty
  std::vector<std::string> labels; // id2label in order of id; empty without
  int classes = 0;                 // 0: unknown
  // images
  int patch_height = 0, patch_width = 0, image_height = 0, image_width = 0, prefix_tokens = 1;
  bool gated_mlp = false; // DINOv2's SwiGLU
  std::optional<TimmPreparation> timm;
  // text
  int vocabulary = 0, max_positions = 0, token_types = 0;
  // decoders
  bool causal = false; // a token attends to itself and those before it
  bool rotary = false; // rotary position embeddings of q and k
};

// Reads and checks config.json. Throws Error (missing), ForeignFile (no known model_type or architecture),
// BrokenFile (not JSON, missing or invalid values).
ModelConfig read_config(const std::filesystem::path& folder);

// The facts for the window and the commands.
ModelInfo info_of(const ModelConfig& config, const std::filesystem::path& folder);

} // namespace hydrascope
