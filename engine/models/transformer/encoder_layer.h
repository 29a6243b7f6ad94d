// One block of a transformer: attention by a kernel, then the MLP. Vision models and decoders normalise
// before each part and may scale its output (LayerScale); BERT normalises after each part.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "engine/models/transformer/checkpoint.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/linear.h"
#include "engine/models/transformer/model.h"
#include "engine/models/transformer/rotary.h"

namespace hydrascope {

// LayerNorm, or RMSNorm (Zhang and Sennrich 2019), which subtracts no mean and has no bias.
struct Norm {
  at::Tensor weight, bias; // (D)
  double epsilon = 1e-12;
  bool rms = false;

  at::Tensor operator()(const at::Tensor& x) const;
  // Normalises a single row x (D) into out (D), in float32 on the CPU.
  void normalise_row(const float* x, float* out) const;
};

// The family's names of a block's parameters, without `encoder.layer.N.`.
struct LayerNames {
  const char* query = "";
  const char* key = "";
  const char* value = "";
  const char* attention_output = "";
  const char* norm1 = ""; // before the attention, or after it
  const char* norm2 = ""; // before the MLP, or after it
  const char* mlp_in = "";
  const char* mlp_out = "";
  const char* mlp_gate = nullptr; // the gate of a gated MLP, or null
  const char* scale1 = nullptr;   // LayerScale, or null
  const char* scale2 = nullptr;
  bool norm_first = false;
  const char* query_key_value = nullptr; // one projection in place of query, key and value, or null
};
LayerNames layer_names(const ModelConfig& config);

// N of a parameter `encoder.layer.N.…`; −1 outside the blocks.
int layer_of_parameter(const std::string& name);

// A block's input besides the hidden state.
struct BlockContext {
  const at::Tensor& mask; // (B,N) bool or undefined
  const TokenLayout& layout;
  const Kernel& kernel;
  const KernelParameters& kernel_parameters;
  const Rotary* rotary = nullptr; // turns q and k, or null
  const at::Tensor& positions;    // (N) int64, or undefined: first_position + 0 … N−1
  std::int64_t first_position = 0;
  DecodingState* state = nullptr; // the tokens before these, or null: there are none
  std::span<const int> muted = {};
  std::int64_t outputs = 0; // > 0: computes the output of the first `outputs` tokens only
  at::Tensor read = {};     // (P) int64: computes the output of these of the B·N tokens only, as (P,D)
};

class EncoderLayer {
public:
  // From the parameters `encoder.layer.LAYER.…`, which must exist in the right shapes.
  EncoderLayer(const TensorMap& parameters, const ModelConfig& config, int layer);

  // (B,N,D) → (B,N,D), or of the requested tokens; fills `tap` unless it is null.
  at::Tensor operator()(const at::Tensor& hidden, const BlockContext& context, AttentionTap* tap) const;

private:
  struct LayerParameters;
  EncoderLayer(const LayerParameters& from, const ModelConfig& config, const LayerNames& names);
  // With `Tap` NoTap the code of taps is not compiled in: the cost of a block without any tap.
  struct NoTap {};
  template <typename Tap>
  at::Tensor run(const at::Tensor& hidden, const BlockContext& context, Tap tap) const;
  // Attention over all tokens of x, with the output of the requested tokens.
  template <typename Tap>
  at::Tensor attention(const at::Tensor& x, const BlockContext& context, Tap tap) const;
  at::Tensor mlp(const at::Tensor& x) const;
  AttentionInput attention_input(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const at::Tensor& layer_input, const BlockContext& context) const;
  // For a single token that is decoded by state, on the CPU and without a tap (encoder_layer_token.cpp). Not
  // for BERT's order, LayerScale, muted heads and weights in float16.
  bool is_token(const at::Tensor& hidden, const BlockContext& context) const;
  at::Tensor run_token(const at::Tensor& hidden, const BlockContext& context) const;

  std::int64_t heads_, key_heads_;
  Activation activation_;
  bool norm_first_, causal_;
  Norm norm1_, norm2_;
  Linear qkv_; // three parts, or one of all three
  Linear output_, mlp_in_, mlp_out_;
  FoldedProjections folded_;
  at::Tensor scale1_, scale2_; // (D) or undefined
  bool gated_ = false;         // mlp_in_ holds gate and up projection
};

} // namespace hydrascope
