// Distillation on a decoder: causal weights, heads that share a key/value head, running text.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/measure/teacher_forced_runs.h"
#include "engine/models/transformer/model.h"
#include "engine/run/model_store.h"
#include "engine/run/pass.h"
#include "engine/training/data/sampling.h"
#include "engine/training/tasks/distill_data.h"
#include "engine/training/tasks/running_text.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using testing::ToyFolder;

DistillRequest of_decoder(const ToyFolder& folder) {
  DistillRequest request;
  request.settings.model_folder = testing::make_toy_model(folder, "written");
  request.settings.adapters.automatic = false;
  request.kernel.name = "hedgehog";
  request.data = {testing::make_running_text(folder, "text.txt", 60)};
  request.chunk = {0, 24};
  request.settings.epochs = 12;
  request.settings.batch = 4;
  request.settings.validation_share = 0.2;
  request.settings.execution.threads = 1;
  request.settings.output = folder / "maps.safetensors";
  return request;
}

// y of the sides as the kernel has it from a map (H′,d,d), each head or group of heads with its own.
at::Tensor mapped(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const std::int64_t group = x.size(1) / weight.size(0);
  const at::Tensor own = weight.to(at::kDouble).repeat_interleave(group, 0);
  return at::matmul(x.to(at::kDouble), own) + bias.to(at::kDouble).repeat_interleave(group, 0).unsqueeze(1);
}

// The held-out loss of each head by its definition, in float64: the mean over rows, the first included, of
// the soft cross-entropy between causal weights.
std::vector<double> losses_of(const DistillRequest& request, const std::vector<KernelParameters>& maps) {
  const auto prepared = training::prepare_model(*make_model_store(), request.settings.model_folder,
                                                request.settings.adapters, {}, {}, true);
  const auto data = training::make_distill_data(prepared, request);
  const auto split = training::split_items(data->items(), request.settings.validation_share,
                                           training::mix({request.settings.execution.seed, 1}));
  std::vector<double> losses(12);
  for (const std::int64_t item : split.held_out)
    visit_softmax_run(prepared.model, data->batch({item}), [&](const int layer, const AttentionInput& input) {
      const KernelParameters& map = maps[static_cast<std::size_t>(layer)];
      const at::Tensor q = mapped(input.q, map.at("query_map.weight"), map.at("query_map.bias"));
      const at::Tensor k = mapped(input.k, map.at("key_map.weight"), map.at("key_map.bias"));
      const at::Tensor products =
          at::matmul(q.exp(), k.exp().transpose(2, 3)) + at::matmul((-q).exp(), (-k).exp().transpose(2, 3));
      const at::Tensor scores =
          at::matmul(input.q.to(at::kDouble), input.k.to(at::kDouble).transpose(2, 3)) / std::sqrt(8.0);
      const at::Tensor kept = products.tril(), exponentials = scores.exp().tril();
      const at::Tensor target = exponentials / exponentials.sum(-1, true);
      // Of later keys both weights are 0.
      const at::Tensor logarithms = (kept / kept.sum(-1, true)).clamp_min(1e-300).log();
      const at::Tensor of_heads = -(target * logarithms).sum(-1).mean(-1)[0];
      for (std::int64_t head = 0; head < 4; ++head)
        losses[static_cast<std::size_t>(4 * layer + head)] += of_heads[head].item<double>();
    });
  for (double& loss : losses) loss /= static_cast<double>(split.held_out.size());
  return losses;
}

std::vector<KernelParameters> maps_in(const Model& model, const KernelSpec& kernel) {
  std::vector<KernelParameters> maps;
  for (int layer = 0; layer < model.info().layers; ++layer)
    maps.push_back(layer_kernel(model, layer, kernel).parameters);
  return maps;
}

TEST(DistillDecoder, TrainsCausalWeightsOfGroupedHeads) {
  const at::NoGradGuard no_gradients;
  const ToyFolder folder;
  DistillRequest request = of_decoder(folder);
  request.settings.epochs = 6;
  request.settings.learning_rate = 5e-2;
  TrainingOutcome outcome;
  {
    const at::AutoGradMode gradients(true);
    outcome = distill(request);
  }
  EXPECT_GT(outcome.before.divergence, 1e-2);
  EXPECT_LT(outcome.held_out.divergence, 0.9 * outcome.before.divergence);
  EXPECT_EQ(outcome.adapter.role, "maps");

  const auto base = load_model(request.settings.model_folder);
  const auto model = apply_adapter(base, outcome.adapter, {});
  const KernelParameters maps = model->kernel_parameters(2, request.kernel);
  EXPECT_EQ(maps.at("query_map.weight").sizes(), (std::vector<std::int64_t>{4, 8, 8}));
  EXPECT_EQ(maps.at("key_map.weight").sizes(), (std::vector<std::int64_t>{2, 8, 8}));

  const auto before = losses_of(request, maps_in(*base, request.kernel));
  const auto after = losses_of(request, maps_in(*model, request.kernel));
  for (std::size_t head = 0; head < before.size(); ++head) {
    EXPECT_NEAR(outcome.before.head_losses[head], before[head], 1e-4);
    EXPECT_NEAR(outcome.held_out.head_losses[head], after[head], 2e-3) << "float16";
  }
}

TEST(DistillDecoder, HeadsThatShareAKeyMapKeepTheirBestStateTogether) {
  const ToyFolder folder;
  DistillRequest request = of_decoder(folder);
  request.settings.batch = 1;
  request.settings.epochs = 1;
  request.settings.validate_every = 3;
  request.settings.learning_rate = 0.1; // so high that groups get worse again
  const TrainingOutcome outcome = distill(request);
  const auto of_group = [](const std::vector<double>& losses, const std::size_t group) {
    return losses[2 * group] + losses[2 * group + 1];
  };
  double best_whole = outcome.before.loss;
  for (std::size_t group = 0; group < 6; ++group) {
    double least = of_group(outcome.before.head_losses, group);
    for (const HeldOut& one : outcome.validations) {
      least = std::min(least, of_group(one.head_losses, group));
      best_whole = std::min(best_whole, one.loss);
    }
    EXPECT_DOUBLE_EQ(of_group(outcome.held_out.head_losses, group), least);
  }
  EXPECT_LT(outcome.held_out.loss, best_whole);
}

TEST(DistillDecoder, PartsOfABatchHaveTheSameGradients) {
  const ToyFolder folder;
  DistillRequest request = of_decoder(folder);
  request.settings.epochs = 1;
  const auto whole = distill(request).curve;
  request.settings.accumulate = 4;
  const auto parts = distill(request).curve;
  ASSERT_EQ(parts.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i].second, whole[i].second, 1e-5);
  request.settings.accumulate = 5;
  EXPECT_THROW(distill(request), UsageError);
}

TEST(RunningText, IsCutIntoWholePieces) {
  using training::running_pieces;
  TokenIds text(103);
  std::iota(text.begin(), text.end(), std::int64_t{0});
  const auto pieces = running_pieces(text, {0, 10}, 0, 0);
  ASSERT_EQ(pieces.size(), 10U);
  EXPECT_EQ(pieces[9].front(), 90);
  EXPECT_EQ(running_pieces(text, {0, 10}, 3, 0).size(), 3U);
  EXPECT_EQ(running_pieces(text, {0, 200}, 0, 0).size(), 1U) << "what is left, if there is nothing else";

  const auto of_many_lengths = running_pieces(text, {4, 30}, 0, 7);
  std::int64_t next = 0;
  for (const TokenIds& piece : of_many_lengths) {
    EXPECT_GE(piece.size(), 4U);
    EXPECT_LE(piece.size(), 30U);
    for (const std::int64_t token : piece) EXPECT_EQ(token, next++);
  }
  EXPECT_EQ(of_many_lengths, running_pieces(text, {4, 30}, 0, 7));
  EXPECT_NE(of_many_lengths, running_pieces(text, {4, 30}, 0, 8));
}

TEST(RunningText, OfADecoderHasALengthByDefault) {
  ModelInfo model;
  model.max_tokens = 512;
  EXPECT_EQ(training::checked_chunk({}, model).most, 0) << "others read a text a line";
  model.causal = true;
  EXPECT_EQ(training::checked_chunk({}, model).most, 256);
  model.max_tokens = 100;
  EXPECT_EQ(training::checked_chunk({}, model).most, 100);
  EXPECT_THROW(training::checked_chunk({0, 101}, model), UsageError);
}

} // namespace
} // namespace hydrascope
