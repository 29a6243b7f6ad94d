#include "engine/training/tasks/recall_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/models/transformer/encoder.h"
#include "engine/run/run.h"
#include "engine/training/data/sampling.h"

namespace hydrascope::training {
namespace {

// The purpose of a random number of a sequence.
enum Purpose : std::uint64_t { a_value, a_key, the_last_key };

std::size_t below(const std::size_t count, const std::uint64_t bits) {
  return static_cast<std::size_t>(unit(bits) * static_cast<double>(count));
}

} // namespace

RecallSequence recall_sequence(const RecallTask& task, const std::uint64_t seed, const RecallPart part,
                               const std::int64_t index) {
  const std::uint64_t own =
      mix({seed, 0x7265'63616c6cULL, static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(index)});
  const auto keys = static_cast<std::size_t>(task.keys), values = static_cast<std::size_t>(task.values);
  std::vector<std::size_t> value_of(keys);
  for (std::size_t key = 0; key < keys; ++key) value_of[key] = keys + below(values, mix({own, a_value, key}));

  RecallSequence sequence;
  std::vector<std::size_t> occurred; // keys, in the order of their first occurrence
  const auto append = [&](const std::size_t key) {
    sequence.tokens.push_back(static_cast<std::int64_t>(key));
    if (std::ranges::find(occurred, key) == occurred.end())
      occurred.push_back(key);
    else
      sequence.recalled.push_back(static_cast<std::int64_t>(sequence.tokens.size()));
    sequence.tokens.push_back(static_cast<std::int64_t>(value_of[key]));
  };
  const auto pairs = static_cast<std::size_t>(task.tokens) / 2 - 1;
  for (std::size_t pair = 0; pair < pairs; ++pair) append(below(keys, mix({own, a_key, pair})));
  append(occurred[below(occurred.size(), mix({own, the_last_key}))]);
  return sequence;
}

namespace {

// U(−1/√in, 1/√in), as torch::nn::Linear; biases 0.
void add_linear(NamedTensors& leaves, const std::string& name, const std::int64_t in, const std::int64_t out,
                const at::Generator& generator) {
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  leaves[name + ".weight"] = (2 * at::rand({out, in}, generator) - 1) * bound;
  leaves[name + ".bias"] = at::zeros({out});
}

void add_norm(NamedTensors& leaves, const std::string& name, const std::int64_t width) {
  leaves[name + ".weight"] = at::ones({width});
  leaves[name + ".bias"] = at::zeros({width});
}

std::string in_layer(const int layer, const char* name) { return fmt::format("layer.{}.{}", layer, name); }

void require_causal(const Kernel& kernel, const RecallRequest& request) {
  const Support support = kernel.supports({.batch = request.settings.batch,
                                           .heads = request.model.heads,
                                           .tokens = request.task.tokens - 1,
                                           .head_width = request.model.head_width,
                                           .has_layer_input = true,
                                           .causal = true});
  if (!support.ok)
    throw UsageError("--kernel " + kernel.spec().text(), support.reason, "choose another kernel");
}

} // namespace

RecallModel::RecallModel(const RecallRequest& request, const std::uint64_t seed, const at::Device device) {
  const RecallModelShape& shape = request.model;
  ModelConfig config;
  config.family = "decoder";
  config.layers = shape.layers;
  config.heads = shape.heads;
  config.width = shape.heads * shape.head_width;
  config.intermediate = 4 * config.width;
  config.layer_norm_epsilon = 1e-5;
  config.vocabulary = request.task.keys + request.task.values;
  config.max_positions = request.task.tokens - 1;
  config.causal = true;
  config.rotary = RotaryConfig{};

  const std::int64_t width = config.width, vocabulary = config.vocabulary;
  const KernelSpec spec = seeded(request.kernel, seed);
  at::Generator generator = at::detail::createCPUGenerator(mix({seed, 1}));
  std::vector<LayerKernel> kernels;
  leaves_["embed_tokens.weight"] = at::randn({vocabulary, width}, generator);
  for (int layer = 0; layer < shape.layers; ++layer) {
    add_norm(leaves_, in_layer(layer, "attention_norm"), width);
    add_linear(leaves_, in_layer(layer, "query_key_value"), width, 3 * width, generator);
    add_linear(leaves_, in_layer(layer, "output"), width, width, generator);
    add_norm(leaves_, in_layer(layer, "mlp_norm"), width);
    add_linear(leaves_, in_layer(layer, "mlp_in"), width, 4 * width, generator);
    add_linear(leaves_, in_layer(layer, "mlp_out"), 4 * width, width, generator);
    kernels.push_back(initial_layer_kernel(info_of(config, "decoder"), layer, spec));
    require_causal(*kernels.back().kernel, request);
    const auto fixed = kernels.back().kernel->fixed_parameters(); // not trained
    for (auto& [name, value] : kernels.back().parameters) {
      value = value.to(device, value.scalar_type(), false, /*copy=*/true);
      if (std::ranges::find(fixed, name) == fixed.end()) leaves_[in_layer(layer, "kernel.") + name] = value;
    }
  }
  add_norm(leaves_, "norm", width);
  add_linear(leaves_, "lm_head", width, vocabulary, generator);
  TensorMap parameters;
  for (auto& [name, value] : leaves_) {
    value = value.to(device);
    value.requires_grad_(true);
    if (name.find(".kernel.") == std::string::npos)
      parameters[name.starts_with("layer.") ? "encoder." + name : name] = value;
  }
  pass_ = plain_pass(make_decoder(config, std::move(parameters)), std::move(kernels));
  pass_.training = true;
  pass_.for_logits = true;
}

at::Tensor RecallModel::logits(const at::Tensor& tokens, const at::Tensor& positions,
                               const TapVisitor& visit) const {
  Pass pass = pass_;
  pass.input.input.token_ids = tokens;
  pass.input.input.read = positions;
  pass.observed = static_cast<bool>(visit);
  pass.tapped.assign(pass.layers.size(), pass.observed);
  const at::Tensor output = run_pass(pass, {}, visit).output;
  return pass.model.model->logits(output, pass.input.input);
}

} // namespace hydrascope::training
