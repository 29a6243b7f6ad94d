#include "engine/models/transformer/encoder_layer.h"

#include <string_view>
#include <type_traits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rms_norm.h>
#include <c10/core/GradMode.h>

#include "engine/attention/interface/decoding.h"
#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

constexpr LayerNames vit_names{"attention.attention.query",
                               "attention.attention.key",
                               "attention.attention.value",
                               "attention.output.dense",
                               "layernorm_before",
                               "layernorm_after",
                               "intermediate.dense",
                               "output.dense",
                               nullptr,
                               nullptr,
                               nullptr,
                               true};
constexpr LayerNames dinov2_names{"attention.attention.query",
                                  "attention.attention.key",
                                  "attention.attention.value",
                                  "attention.output.dense",
                                  "norm1",
                                  "norm2",
                                  "mlp.fc1",
                                  "mlp.fc2",
                                  nullptr,
                                  "layer_scale1.lambda1",
                                  "layer_scale2.lambda1",
                                  true};
constexpr LayerNames bert_names{"attention.self.query",
                                "attention.self.key",
                                "attention.self.value",
                                "attention.output.dense",
                                "attention.output.LayerNorm",
                                "output.LayerNorm",
                                "intermediate.dense",
                                "output.dense",
                                nullptr,
                                nullptr,
                                nullptr,
                                false};

// GPT-2's names are made these, too (checkpoint.cpp).
constexpr LayerNames llama_names{"self_attn.q_proj",
                                 "self_attn.k_proj",
                                 "self_attn.v_proj",
                                 "self_attn.o_proj",
                                 "input_layernorm",
                                 "post_attention_layernorm",
                                 "mlp.up_proj",
                                 "mlp.down_proj",
                                 "mlp.gate_proj",
                                 nullptr,
                                 nullptr,
                                 true};
// What recall trains.
constexpr LayerNames decoder_names{nullptr,    nullptr,  nullptr,          "output", "attention_norm",
                                   "mlp_norm", "mlp_in", "mlp_out",        nullptr,  nullptr,
                                   nullptr,    true,     "query_key_value"};

} // namespace

// A block's parameters by the family's names.
struct EncoderLayer::LayerParameters {
  const TensorMap& all;
  std::string prefix;

  at::Tensor tensor(const std::string& name) const {
    const auto found = all.find(prefix + name);
    return found == all.end() ? at::Tensor() : found->second;
  }
  Linear::Part part(const std::string& name) const {
    return {tensor(name + ".weight"), tensor(name + ".bias")};
  }
  Norm norm(const std::string& name, const ModelConfig& config) const {
    return {tensor(name + ".weight"), tensor(name + ".bias"), config.layer_norm_epsilon, config.rms_norm};
  }
};

at::Tensor Norm::operator()(const at::Tensor& x) const {
  return rms ? at::rms_norm(x, weight.sizes(), weight, epsilon)
             : at::layer_norm(x, weight.sizes(), weight, bias, epsilon);
}

LayerNames layer_names(const ModelConfig& config) {
  if (config.family == "bert") return bert_names;
  if (config.family == "decoder") return decoder_names;
  if (config.family == "gpt2" || config.family == "llama") {
    LayerNames names = llama_names;
    if (!config.gated_mlp) names.mlp_gate = nullptr;
    return names;
  }
  if (config.family != "dinov2") {
    LayerNames names = vit_names;
    if (config.layer_scale) {
      names.scale1 = dinov2_names.scale1;
      names.scale2 = dinov2_names.scale2;
    }
    return names;
  }
  LayerNames names = dinov2_names;
  if (config.gated_mlp) {
    names.mlp_in = "mlp.up_proj";
    names.mlp_gate = "mlp.gate_proj";
    names.mlp_out = "mlp.down_proj";
  }
  return names;
}

int layer_of_parameter(const std::string& name) {
  constexpr std::string_view prefix = "encoder.layer.";
  if (!name.starts_with(prefix)) return -1;
  int layer = 0;
  std::size_t at = prefix.size();
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && layer < 1'000'000; ++at)
    layer = 10 * layer + (name[at] - '0');
  return at > prefix.size() && at < name.size() && name[at] == '.' ? layer : -1;
}

EncoderLayer::EncoderLayer(const TensorMap& parameters, const ModelConfig& config, int layer)
    : EncoderLayer(LayerParameters{parameters, "encoder.layer." + std::to_string(layer) + "."}, config,
                   layer_names(config)) {}

EncoderLayer::EncoderLayer(const LayerParameters& from, const ModelConfig& config, const LayerNames& names)
    : heads_(config.heads),
      key_heads_(config.kv_heads()),
      activation_(config.activation),
      norm_first_(names.norm_first),
      causal_(config.causal),
      norm1_(from.norm(names.norm1, config)),
      norm2_(from.norm(names.norm2, config)),
      qkv_(names.query_key_value != nullptr
               ? std::vector<Linear::Part>{from.part(names.query_key_value)}
               : std::vector<Linear::Part>{from.part(names.query), from.part(names.key),
                                           from.part(names.value)}),
      output_({from.part(names.attention_output)}),
      mlp_in_(names.mlp_gate != nullptr
                  ? std::vector<Linear::Part>{from.part(names.mlp_gate), from.part(names.mlp_in)}
                  : std::vector<Linear::Part>{from.part(names.mlp_in)}),
      mlp_out_({from.part(names.mlp_out)}),
      scale1_(names.scale1 != nullptr ? from.tensor(names.scale1) : at::Tensor()),
      scale2_(names.scale2 != nullptr ? from.tensor(names.scale2) : at::Tensor()),
      gated_(names.mlp_gate != nullptr) {}

AttentionInput EncoderLayer::attention_input(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                             const at::Tensor& layer_input,
                                             const BlockContext& context) const {
  AttentionInput input;
  input.q = q;
  input.k = k;
  input.v = v;
  if (key_heads_ < heads_) input.key_heads = key_heads_;
  input.layer_input = layer_input;
  input.mask = context.mask;
  input.causal = causal_;
  input.layout = context.layout;
  return input;
}

template <typename Tap>
at::Tensor EncoderLayer::attention(const at::Tensor& x, const BlockContext& context, Tap tap) const {
  const std::int64_t batch = x.size(0);
  const std::int64_t tokens = x.size(1);
  const std::int64_t width = x.size(2);
  // A tap that reads q and k sees them without the kernel's maps, and a decoding state has maps of its own.
  bool folds = context.state == nullptr && !c10::GradMode::is_enabled() && qkv_.parts().size() == 3 &&
               context.rotary == nullptr;
  if constexpr (!std::is_same_v<Tap, NoTap>) folds = folds && !tap->reads_attention;
  const auto folded = folds ? folded_.of(qkv_, context.kernel, context.kernel_parameters, heads_) : nullptr;
  const KernelParameters& kernel_parameters = folded ? folded->parameters : context.kernel_parameters;
  std::vector<at::Tensor> parts = (folded ? folded->projections : qkv_).split(x);
  if (parts.size() == 1) parts = parts.front().chunk(3, -1);
  const auto of_heads = [&](const at::Tensor& part, const std::int64_t heads) {
    return part.view({batch, tokens, heads, width / heads_}).transpose(1, 2);
  };
  const auto rotated = [&](const at::Tensor& part) {
    return context.rotary != nullptr ? (*context.rotary)(part, context.positions, context.first_position)
                                     : part;
  };

  AttentionInput input =
      attention_input(rotated(of_heads(parts[0], heads_)), rotated(of_heads(parts[1], key_heads_)),
                      of_heads(parts[2], key_heads_), x, context);
  if (key_heads_ < heads_ && context.state == nullptr)
    for (at::Tensor* const part : {&input.k, &input.v}) *part = for_each_head(*part, heads_);
  AttentionOutput output = context.state != nullptr
                               ? AttentionOutput{.out = context.state->extend(input), .path = "state"}
                               : context.kernel.run(input, kernel_parameters);
  if constexpr (!std::is_same_v<Tap, NoTap>) {
    // The gradient is taken at the attention's output, also if nothing before it is differentiable.
    if (c10::GradMode::is_enabled() && !output.out.requires_grad())
      output.out = output.out.detach().set_requires_grad(true);
    if (tap->reads_attention) {
      tap->input = input;
      tap->out = output.out;
    }
    tap->path = output.path;
    tap->zero_denominators = output.zero_denominators;
  }
  const at::Tensor finished = without_muted(
      context.kernel.finish(output.out, context.mask, context.kernel_parameters), context.muted);
  const std::int64_t outputs = context.outputs > 0 ? context.outputs : tokens;
  return output_(
      finished.narrow(2, 0, outputs).to(x.scalar_type()).transpose(1, 2).reshape({batch, outputs, width}));
}

at::Tensor EncoderLayer::mlp(const at::Tensor& x) const {
  if (!gated_) return mlp_out_(mlp_in_(x, activation_));
  const std::vector<at::Tensor> parts = mlp_in_.split(x);
  return mlp_out_(activate(parts[0], activation_) * parts[1]);
}

template <typename Tap>
at::Tensor EncoderLayer::run(const at::Tensor& hidden, const BlockContext& context, Tap tap) const {
  const auto scaled = [](const at::Tensor& x, const at::Tensor& scale) {
    return scale.defined() ? x * scale : x;
  };
  const auto read = [&](const at::Tensor& rows) {
    return context.read.defined() ? rows.flatten(0, 1).index_select(0, context.read) : rows;
  };
  at::Tensor x = context.outputs > 0 ? hidden.narrow(1, 0, context.outputs) : hidden;
  if (norm_first_) {
    x = read(x + scaled(attention(norm1_(hidden), context, tap), scale1_));
    x = x + scaled(mlp(norm2_(x)), scale2_);
  } else {
    x = read(norm1_(x + attention(hidden, context, tap)));
    x = norm2_(x + mlp(x));
  }
  return x;
}

at::Tensor EncoderLayer::operator()(const at::Tensor& hidden, const BlockContext& context,
                                    AttentionTap* tap) const {
  if (tap == nullptr && is_token(hidden, context)) return run_token(hidden, context);
  return tap == nullptr ? run(hidden, context, NoTap{}) : run(hidden, context, tap);
}

} // namespace hydrascope
