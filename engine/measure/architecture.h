// The dimensions of an encoder, from which its flops follow. Plain types.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/models/model_info.h"

namespace hydrascope {

struct Architecture {
  std::string name;
  InputKind input = InputKind::image;
  int layers = 12;
  int heads = 12;
  int width = 768;         // D
  int intermediate = 3072; // width of the MLP's hidden layer
  bool gated_mlp = false;  // two projections into the hidden layer (SwiGLU)
  // Images of three channels.
  int patch_height = 16, patch_width = 16; // pixels
  int prefix_tokens = 1;
  int image_height = 224, image_width = 224; // the size it is made for
  // Text.
  int tokens = 0; // the length of its position table
  // What follows the blocks, in multiply-accumulates: for a whole input, and for each of its tokens.
  double head_products = 0, token_head_products = 0;
  int norms_outside_blocks = 1; // over all tokens: before or behind the blocks, in the head
};

// DeiT, ViT, DINOv2 and BERT in their published sizes, in fixed order. Image models end in a classifier of
// 1,000 classes, but DINOv2 and the text models are bare encoders.
const std::vector<Architecture>& known_architectures();

// Throws UsageError naming the nearest known name and listing all.
const Architecture& architecture_named(std::string_view name);

// A model at hand by its config.json, with the head that its `architectures` entry names; the input's size is
// what its pre-processing gives. Adapters are not looked at. Throws as read_model_info.
Architecture architecture_of_model(const std::filesystem::path& folder);

} // namespace hydrascope
