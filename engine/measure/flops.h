// Flops by formula, per layer and kernel: multiply-accumulates, as the papers count them. Nothing is run.
// Plain header.
//
// The Hydra paper (Bolya et al. 2022) uses two conventions; both are given.
//   total   tables 2 and 3: patch embedding, blocks and head, LayerNorm at 5 an element, Hydra's element-wise
//           products at 0.
//   blocks  table 4: the blocks' matrix products, Hydra's products at 2·N·D a layer, norms not counted.
//           At 224 pixels that table prints softmax's total, 17.6, beside its share of the blocks, 4.10 %.
// Neither counts biases, activations, residual sums or the exponentials of softmax.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/models/model_info.h"

namespace hydrascope {

// ---- Architectures ----

// The dimensions of an encoder or decoder, which determine its flops.
struct Architecture {
  std::string name;
  InputKind input = InputKind::image;
  int layers = 12;
  int heads = 12;
  int key_heads = 0;       // of keys and values, each for several heads of queries; 0: as many as heads
  int width = 768;         // D
  int intermediate = 3072; // width of the MLP's hidden layer
  bool gated_mlp = false;  // two projections into the hidden layer (SwiGLU)
  // Images of three channels.
  int patch_height = 16, patch_width = 16; // pixels
  int prefix_tokens = 1;
  int image_height = 224, image_width = 224; // the default input
  // Text.
  int tokens = 0; // the length of its position table
  // The head, in multiply-accumulates: per input, and per token.
  double head_products = 0, token_head_products = 0;
  int norms_outside_blocks = 1; // over all tokens: before or after the blocks, in the head
};

// DeiT, ViT, DINOv2 and BERT in their published sizes, in fixed order. Image models have a classifier of
// 1,000 classes; DINOv2 and the text models are bare encoders.
const std::vector<Architecture>& known_architectures();

// Throws UsageError naming the nearest known name and listing all.
const Architecture& architecture_named(std::string_view name);

// The architecture of an installed model, from its config.json: with the head that its `architectures` entry
// names (a decoder's logits of every token) and the input size of its pre-processing, without adapters.
// Throws as read_model_info.
Architecture architecture_of_model(const std::filesystem::path& folder);

// ---- Counting ----

// One block, in multiply-accumulates.
struct LayerFlops {
  KernelSpec kernel;
  double projections = 0; // q, k, v and output: 4·N·D², 3·N·D² for a kernel without W_q (poly-nl);
                          // k and v of grouped heads: 2·N·D·(key_heads·d) in place of 2·N·D²
  double attention = 0;   // the kernel's own, as Kernel::cost gives it
  double attention_counted = 0; // of these in `total`: 0 for Hydra's element-wise products
  double mlp = 0;               // 2·N·D·D′, 3·N·D·D′ where gated
  double norms = 0;             // the block's two and the kernel's own

  double total() const { return projections + attention_counted + mlp + norms; }
  double blocks() const { return projections + attention + mlp; }
};

struct Flops {
  std::int64_t tokens = 0; // N, prefix tokens included
  double embedding = 0;    // patches only: looking up words costs nothing
  double head = 0;
  double norms = 0; // outside the blocks
  std::vector<LayerFlops> layers;

  double total() const;
  double blocks() const;
  double attention_share() const; // of `blocks`, 0 … 1
};

// An image of this size, in pixels. Throws UsageError if it is not a whole number of patches, the schedule
// has another number of layers, or a kernel cannot run in the architecture, with the kernel's reason.
Flops flops_of_image(const Architecture& architecture, int height, int width, const Schedule& schedule);

// A text of this many tokens, which may exceed the position table. Throws likewise.
Flops flops_of_text(const Architecture& architecture, std::int64_t tokens, const Schedule& schedule);

// ---- Tables: input sizes × schedules ----

// Height and width of an image in pixels, or the tokens of a text.
struct InputSize {
  int height = 0, width = 0;
  int tokens = 0;
};

struct FlopsRow {
  InputSize size;
  std::string schedule; // as written: "hydra-cosine", "back:2=hydra-cosine"
  std::string summary;  // "softmax ×10, hydra-cosine ×2"
  Flops flops;
};

// A schedule in the words of the command line; the base kernel only where it is not softmax.
std::string written_schedule(const ScheduleText& text);

// Images: the rows of the Hydra paper's tables 2 to 4 that the number of layers allows. Text, for which no
// paper has such a table: one kernel of each cost in all layers.
std::vector<ScheduleText> default_schedules(const Architecture& architecture);

// Images: the architecture's own size, unless it is among them, and the side lengths of the Hydra paper's
// tables that the patch size divides. Text: 128 tokens and the length of the position table.
std::vector<InputSize> default_sizes(const Architecture& architecture);

// A row for each size and schedule, sizes outermost. Throws as parse_schedule and flops_of_….
std::vector<FlopsRow> flops_table(const Architecture& architecture, const std::vector<InputSize>& sizes,
                                  const std::vector<ScheduleText>& schedules);

} // namespace hydrascope
