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
#include "engine/run/execution.h"
#include "engine/training/data/random.h"

namespace hydrascope::training {
namespace {

// U(−1/√in, 1/√in), as torch::nn::Linear starts; biases 0.
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

RecallModel::RecallModel(const RecallRequest& request, const std::uint64_t seed) {
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
  config.causal = config.rotary = true;

  const std::int64_t width = config.width, vocabulary = config.vocabulary;
  const KernelSpec spec = seeded(request.kernel, seed);
  at::Generator generator = at::detail::createCPUGenerator(mix({seed, 1}));
  std::vector<LayerKernel> kernels;
  leaves_["embedding.weight"] = at::randn({vocabulary, width}, generator);
  for (int layer = 0; layer < shape.layers; ++layer) {
    add_norm(leaves_, in_layer(layer, "attention_norm"), width);
    add_linear(leaves_, in_layer(layer, "query_key_value"), width, 3 * width, generator);
    add_linear(leaves_, in_layer(layer, "output"), width, width, generator);
    add_norm(leaves_, in_layer(layer, "mlp_norm"), width);
    add_linear(leaves_, in_layer(layer, "mlp_in"), width, 4 * width, generator);
    add_linear(leaves_, in_layer(layer, "mlp_out"), 4 * width, width, generator);
    kernels.push_back(initial_layer_kernel(info_of(config, "decoder"), layer, spec));
    require_causal(*kernels.back().kernel, request);
    const auto held = kernels.back().kernel->fixed_parameters(); // training leaves them as they are
    for (auto& [name, value] : kernels.back().parameters)
      if (std::ranges::find(held, name) == held.end())
        value = leaves_[in_layer(layer, "kernel.") + name] = value.clone();
  }
  add_norm(leaves_, "final_norm", width);
  add_linear(leaves_, "logits", width, vocabulary, generator);
  TensorMap parameters;
  for (auto& [name, value] : leaves_) {
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
