// Captures in a model's place: softmax gives the recorded outputs of six models, quantities that need q, k
// and v alone work, the others refuse with a reason.
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/cross_attention.h"
#include "engine/base/capture.h"
#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/measure/teacher_forced.h"
#include "engine/models/capture/capture_model.h"
#include "engine/run/inputs.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/quantities/layer_times.h"
#include "engine/run/quantities/measures.h"
#include "engine/run/quantities/recorded_output.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/quantities/vectors.h"
#include "engine/run/quantities/weight_tile.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/runner.h"
#include "engine/training/loop/training.h"
#include "tests/support/checkout.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

std::string recorded(const std::string& name) {
  return (test::source_folder() / "tests" / "golden" / "captures" / (name + ".safetensors")).string();
}

RunRequest request_for(const std::string& capture, QuantityKeys quantities) {
  RunRequest request;
  request.model_folder = capture;
  request.quantities = std::move(quantities);
  return request;
}

// All parts and sequences of the six.
const std::vector<std::string>& all_captures() {
  static const std::vector<std::string> all = {
      recorded("bert"),           recorded("bert") + ":0:1",  recorded("vit"),
      recorded("timm-vit"),       recorded("gpt2"),           recorded("llama"),
      recorded("whisper") + ":0", recorded("whisper") + ":1", recorded("whisper") + ":2"};
  return all;
}

at::Tensor tensor_of_array(const Array& array) {
  return at::from_blob(const_cast<float*>(array.values.data()), array.shape, at::kFloat).clone();
}

TEST(CaptureRun, SoftmaxGivesTheRecordedOutputs) {
  Runner runner;
  for (const std::string& capture : all_captures()) {
    SCOPED_TRACE(capture);
    const auto run = runner.run(request_for(capture, {RecordedOutputKey{}, WeightsKey{.layer = 1}}));
    ASSERT_EQ(run->quantities.find(RecordedOutputKey{})->size(), 2U);
    for (const double difference : *run->quantities.find(RecordedOutputKey{})) EXPECT_LT(difference, 1e-5);

    // The explicit weights times v, both read independently.
    const auto model = load_capture(capture);
    const at::Tensor out = recorded_output(*model, 1); // (1,H,N,d)
    const Capture file = Capture::open(run->model.capture->file);
    const CapturePart& part = file.parts()[static_cast<std::size_t>(run->model.capture->part)];
    const CaptureLayer& layer = file.layers()[part.layers[1]];
    const auto* numbers = reinterpret_cast<const float*>(layer.v.bytes.data());
    const std::int64_t size = layer.key_heads * layer.keys * layer.width;
    const at::Tensor v = at::from_blob(const_cast<float*>(numbers + run->model.capture->item * size),
                                       {layer.key_heads, layer.keys, layer.width}, at::kFloat)
                             .repeat_interleave(layer.heads / layer.key_heads, 0);
    at::Tensor weights = tensor_of_array(run->quantities.find(WeightsKey{.layer = 1})->weights);
    if (layer.queries != layer.keys) weights = weights.slice(1, 0, layer.queries).slice(2, layer.queries);
    const at::Tensor real = (weights.sum(-1, true) > 0).to(at::kFloat); // what padding attends to is ignored
    const at::Tensor expected = out.select(0, 0).slice(1, 0, layer.queries) * real;
    EXPECT_LT((at::matmul(weights, v) - expected).abs().max().item<double>(), 1e-5);
    EXPECT_EQ(real.sum().item<double>() / static_cast<double>(layer.heads),
              capture.ends_with(":1") && !layer.mask.empty() ? 6 : static_cast<double>(layer.queries));
  }
}

TEST(CaptureRun, EveryQuantityOfAttentionWorks) {
  Runner runner;
  for (const std::string& capture : all_captures()) {
    SCOPED_TRACE(capture);
    QuantityKeys keys = {
        WeightsKey{.layer = 0, .kernel = KernelSpec{"hedgehog", {}}, .rows = {1}},
        WeightsKey{.layer = 0, .value_weighted = true},
        TileKey{
            .layer = 1, .kernel = KernelSpec{"elu", {}}, .heads = {}, .fusion = {}, .rows = 4, .columns = 4},
        AttentionRowKey{.layer = 1, .query = 2},
        AttentionRowKey{.layer = 1, .query = {}},
        VectorsKey{.layer = 0, .kernel = KernelSpec{"hydra-cosine", {}}, .query = 1},
        VectorsKey{.layer = 0, .kernel = KernelSpec{"taylor", {}}, .query = 1},
        SimilarHeadsKey{{1, 2}},
        LayerTimesKey{.passes = 1}};
    for (const HeadQuantityInfo& quantity : head_quantity_infos()) {
      keys.add(HeadTableKey{quantity.name});
      for (const char* kernel : {"softmax", "hedgehog", "performer", "hydra-tanh-l2"})
        keys.add(HeadTableKey{quantity.name, KernelSpec{kernel, {}}});
    }
    const auto run = runner.run(request_for(capture, keys));
    const bool cross = run->model.capture->queries > 0;
    EXPECT_EQ(run->tokens.size(), static_cast<std::size_t>(run->model.capture->tokens));
    const auto table = [&](const char* name, const char* kernel) {
      return tensor_of_array(run->quantities.find(HeadTableKey{name, KernelSpec{kernel, {}}})->values);
    };
    EXPECT_LT(table("kl", "softmax").abs().max().item<double>(), 1e-6);
    EXPECT_GT(table("kl", "hedgehog").min().item<double>(), 0);
    EXPECT_NEAR(table("monotonicity", "softmax").min().item<double>(), 1, 1e-6);
    EXPECT_TRUE(table("change", "performer").isfinite().all().item<bool>());
    EXPECT_TRUE(table("change", "hydra-tanh-l2").isfinite().all().item<bool>());
    EXPECT_EQ(table("distance", "softmax").isnan().all().item<bool>(), cross);
    EXPECT_GT(table("entropy", "softmax").min().item<double>(), 0);
    EXPECT_LT(table("entropy", "softmax").max().item<double>(), std::log(17.0) + 1e-5);
    // Rows of weights that have any sum to one, of every query.
    const auto* all = run->quantities.find(AttentionRowKey{.layer = 1, .query = {}});
    EXPECT_NEAR(tensor_of_array(all->weights).sum(-1).min().item<double>(), 1, 1e-5);
    EXPECT_EQ(run->quantities.find(LayerTimesKey{.passes = 1})->front().size(), 2U);
    EXPECT_GT(run->quantities.find(LayerTimesKey{.passes = 1})->front()[0], 0);
    EXPECT_EQ(run->layers.size(), 2U);
  }
}

TEST(CaptureRun, WhatNeedsAModelRefusesWithAReason) {
  Runner runner;
  const auto refusal = [&](RunRequest request) -> std::string {
    try {
      runner.run(request);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  for (const QuantityKey& key : QuantityKeys{FocusKey{0}, HiddenStatesKey{}, HiddenNormsKey{}, LogitsKey{},
                                             PixelsKey{}, DeletionKey{.layer = 0, .steps = 2}}) {
    const std::string message = refusal(request_for(recorded("bert"), {key}));
    EXPECT_NE(message.find("needs the model itself"), std::string::npos) << message;
    EXPECT_TRUE(keys_of_model({key}, read_capture_info(recorded("bert"))).empty());
  }
  EXPECT_NE(refusal(request_for(recorded("whisper") + ":2", {RolloutKey{}})).find("rollout"),
            std::string::npos);
  EXPECT_EQ(refusal(request_for(recorded("vit"), {RolloutKey{}})), "");
  RunRequest muted = request_for(recorded("bert"), {WeightsKey{}});
  muted.muted_heads = {{0, 1}};
  EXPECT_NE(refusal(muted).find("heads muted"), std::string::npos);
  RunRequest hidden = request_for(recorded("bert"), {WeightsKey{}});
  hidden.hidden_tokens = {2};
  EXPECT_NE(refusal(hidden).find("tokens are hidden"), std::string::npos);
  // Kernels that know distances cannot know them between other tokens.
  for (const char* kernel : {"local-window", "cosformer"}) {
    const std::string message =
        refusal(request_for(recorded("whisper") + ":2", {WeightsKey{.kernel = KernelSpec{kernel, {}}}}));
    EXPECT_NE(message.find("cross-attention does not have"), std::string::npos) << message;
  }
}

// A file with these tensors of one layer, and metadata.
class HandMade {
public:
  explicit HandMade(std::map<std::string, at::Tensor> tensors,
                    std::map<std::string, std::string> metadata = {}) {
    write("hand.safetensors", std::move(tensors), metadata);
  }

  void write(const std::string& file, std::map<std::string, at::Tensor> tensors,
             const std::map<std::string, std::string>& metadata = {}) const {
    std::map<std::string, TensorView> views;
    for (auto& [name, tensor] : tensors) {
      tensor = tensor.contiguous();
      ElementType type = ElementType::f32;
      if (tensor.scalar_type() == at::kBool) type = ElementType::boolean;
      if (tensor.scalar_type() == at::kBFloat16) type = ElementType::bf16;
      views[name] = {type,
                     tensor.sizes().vec(),
                     {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
    }
    write_safetensors(folder_ / file, views, metadata);
  }
  std::string file(const std::string& name = "hand.safetensors") const { return (folder_ / name).string(); }
  const fs::path& folder() const { return folder_.path(); }

private:
  test::ScratchFolder folder_;
};

TEST(CaptureRun, CrossAttentionRunsEveryKernelInPieces) {
  at::manual_seed(7);
  for (const auto& [queries, keys] : {std::pair{5, 12}, std::pair{12, 5}, std::pair{7, 7 + 1}}) {
    SCOPED_TRACE(queries);
    const at::Tensor q = at::randn({1, 2, queries, 4}), k = at::randn({1, 2, keys, 4}),
                     v = at::randn({1, 2, keys, 4});
    AttentionInput input;
    input.queries = queries;
    input.q = at::cat({q, at::zeros({1, 2, keys, 4})}, 2);
    input.k = at::cat({at::zeros({1, 2, queries, 4}), k}, 2);
    input.v = at::cat({at::zeros({1, 2, queries, 4}), v}, 2);
    for (const KernelInfo& info : kernel_infos()) {
      if (info.family == KernelFamily::own) continue; // needs a source
      SCOPED_TRACE(info.name);
      const auto kernel = for_cross_attention(make_kernel({info.name, {}}));
      const Support support = kernel->supports(shape_of(input));
      EXPECT_EQ(support.ok, !info.positional && info.uses_query_projection) << support.reason;
      if (!support.ok) {
        EXPECT_FALSE(support.reason.empty());
        EXPECT_THROW(kernel->run(input, {}), UsageError);
        continue;
      }
      const KernelParameters parameters = kernel->initial_parameters({2, 4});
      const at::Tensor out = kernel->run(input, parameters).out;
      const at::Tensor weights = kernel->weights(input, parameters);
      ASSERT_EQ(out.sizes(), input.q.sizes());
      ASSERT_EQ(weights.size(2), queries + keys);
      // A Hydra kernel has a head per feature, of which its weights are sums: it checks the matrix of each.
      const at::Tensor some = at::arange(queries - 2, queries + 2, at::kLong);
      EXPECT_LT(kernel->weights_check(input, parameters, {}), 2e-5);
      EXPECT_LT(kernel->weights_check(input, parameters, some), 2e-5);
      if (!info.implied_weights) {
        EXPECT_LT((at::matmul(weights, input.v) - out).abs().max().item<double>(), 2e-5);
      }
      EXPECT_EQ(weights.slice(2, queries).abs().max().item<double>(), 0);
      EXPECT_EQ(weights.slice(3, 0, queries).abs().max().item<double>(), 0);
      EXPECT_TRUE(
          at::allclose(kernel->weights(input, parameters, some), weights.index_select(2, some), 1e-5, 1e-6));
      if (const auto features = features_of(*kernel, input, parameters, {}, {});
          features && info.normalised) {
        at::Tensor products = at::matmul(features->query, features->key.transpose(2, 3));
        products = (products / products.sum(-1, true)).nan_to_num();
        EXPECT_TRUE(at::allclose(products, weights, 1e-3, 1e-4));
      }
    }
    const at::Tensor expected = at::matmul(at::softmax(at::matmul(q, k.transpose(2, 3)) / 2, -1), v);
    const at::Tensor out = for_cross_attention(make_kernel({}))->run(input, {}).out;
    EXPECT_TRUE(at::allclose(out.slice(2, 0, queries), expected, 1e-5, 1e-6));
    const at::Tensor fq = at::elu(q) + 1, fk = at::elu(k) + 1;
    at::Tensor linear = at::matmul(fq, fk.transpose(2, 3));
    linear = linear / linear.sum(-1, true);
    EXPECT_TRUE(at::allclose(for_cross_attention(make_kernel({"elu", {}}))
                                 ->weights(input, {})
                                 .slice(2, 0, queries)
                                 .slice(3, queries),
                             linear, 1e-5, 1e-6));
  }
}

TEST(CaptureRun, ScaleGroupedHeadsAndHalfTypes) {
  at::manual_seed(3);
  const at::Tensor q = at::randn({1, 4, 6, 8}).to(at::kBFloat16),
                   k = at::randn({1, 2, 6, 8}).to(at::kBFloat16),
                   v = at::randn({1, 2, 6, 8}).to(at::kBFloat16);
  const HandMade file({{"layers.0.q", q}, {"layers.0.k", k}, {"layers.0.v", v}},
                      {{"scale", "0.11"}, {"causal", "true"}});
  const auto run = Runner().run(request_for(file.file(), {WeightsKey{}}));
  EXPECT_EQ(run->model.capture->key_heads, 2);
  at::Tensor scores =
      at::matmul(q.to(at::kFloat), k.to(at::kFloat).repeat_interleave(2, 1).transpose(2, 3)) * 0.11;
  scores = scores.masked_fill(at::ones({6, 6}, at::kBool).triu(1), -INFINITY);
  EXPECT_TRUE(at::allclose(tensor_of_array(run->quantities.find(WeightsKey{})->weights),
                           at::softmax(scores, -1).select(0, 0), 1e-4, 1e-5));
  // A half type rounds the output, by a share of it: no difference of the weights.
  EXPECT_EQ(run->quantities.find(WeightsKey{})->rounding, 0);
  RunRequest rounded = request_for(file.file(), {WeightsKey{}});
  rounded.execution.dtype = "bfloat16";
  const auto of_halves = Runner().run(rounded);
  const WeightsResult& half = *of_halves->quantities.find(WeightsKey{});
  EXPECT_GT(half.check, 1e-3);
  EXPECT_LT(half.check, half.rounding);
  EXPECT_EQ(run->tokens.front().text, "token 0");
  EXPECT_THROW(Runner().run(request_for(file.file(), {WeightsKey{.value_weighted = true}})), UsageError);
}

// As where the script that has recorded it runs again.
TEST(CaptureRun, AFileThatIsWrittenAgainIsReadAgain) {
  at::manual_seed(13);
  const auto layers = [](int count) {
    std::map<std::string, at::Tensor> tensors;
    for (int layer = 0; layer < count; ++layer)
      for (const char* part : {".q", ".k", ".v"})
        tensors["layers." + std::to_string(layer) + part] = at::randn({1, 2, 6, 4});
    return tensors;
  };
  const HandMade file(layers(1));
  const RunRequest request = request_for(file.file() + ":0:0", {HeadTableKey{"entropy"}});
  const auto entropies = [&](Runner& runner) {
    return runner.run(request)->quantities.find(HeadTableKey{"entropy"})->values.values;
  };
  Runner runner;
  for (const int count : {1, 1, 2, 3}) {
    SCOPED_TRACE(count);
    const std::vector<float> before = entropies(runner);
    file.write("hand.safetensors", layers(count));
    const std::vector<float> now = entropies(runner);
    EXPECT_EQ(now.size(), 2U * static_cast<std::size_t>(count));
    EXPECT_NE(now, before);
    Runner other;
    EXPECT_EQ(now, entropies(other));
  }
}

TEST(CaptureRun, OneRunnerTellsCapturesApartThatDifferInScaleOrWithinATensor) {
  at::manual_seed(17);
  const std::map<std::string, at::Tensor> layer = {{"layers.0.q", at::randn({1, 2, 64, 16})},
                                                   {"layers.0.k", at::randn({1, 2, 64, 16})},
                                                   {"layers.0.v", at::randn({1, 2, 64, 16})}};
  const HandMade files(layer, {{"scale", "0.25"}});
  files.write("scale.safetensors", layer, {{"scale", "0.5"}});
  files.write("causal.safetensors", layer, {{"scale", "0.25"}, {"causal", "true"}});
  auto inner = layer;
  at::Tensor& k = inner["layers.0.k"];
  k = k.clone();
  k.slice(2, 28, 36).mul_(3); // beyond a kilobyte from both ends
  files.write("inner.safetensors", inner, {{"scale", "0.25"}});
  Runner runner;
  for (const char* name :
       {"hand.safetensors", "scale.safetensors", "causal.safetensors", "inner.safetensors"})
    for (const HeadTableKey& key : {HeadTableKey{"entropy"}, HeadTableKey{"kl", KernelSpec{"elu", {}}}}) {
      SCOPED_TRACE(name + key.quantity);
      const RunRequest request = request_for(files.file(name), {key});
      Runner alone;
      const auto expected = alone.run(request), together = runner.run(request);
      EXPECT_EQ(together->quantities.find(key)->values.values, expected->quantities.find(key)->values.values);
    }
}

TEST(CaptureRun, RegistersAreNoDistillationTokens) {
  const auto texts = [](std::int64_t prefix) {
    ModelInfo model;
    model.input = InputKind::image;
    ModelInput input;
    input.layout = {prefix, 1, 1};
    std::vector<std::string> all;
    for (const TokenInfo& token : token_infos(model, input)) all.push_back(token.text);
    return all;
  };
  const std::string patch = "row 1, column 1";
  EXPECT_EQ(texts(1), (std::vector<std::string>{"[class]", patch}));
  EXPECT_EQ(texts(2), (std::vector<std::string>{"[class]", "[distillation]", patch}));
  EXPECT_EQ(texts(3), (std::vector<std::string>{"[class]", "[register 1]", "[register 2]", patch}));
}

TEST(CaptureRun, PaddedKeysOfCrossAttentionAreLeftOut) {
  at::manual_seed(5);
  const at::Tensor q = at::randn({2, 2, 3, 4}), k = at::randn({2, 2, 6, 4}), v = at::randn({2, 2, 6, 4});
  at::Tensor mask = at::ones({2, 6}, at::kBool);
  mask.select(0, 1).slice(0, 4).fill_(false);
  const HandMade file({{"layers.0.q", q}, {"layers.0.k", k}, {"layers.0.v", v}, {"layers.0.mask", mask}});
  const auto run = Runner().run(request_for(file.file() + ":0:1", {WeightsKey{}}));
  ASSERT_EQ(run->model.capture->tokens, 3 + 4);
  const at::Tensor expected = at::softmax(at::matmul(q[1], k[1].slice(1, 0, 4).transpose(1, 2)) / 2, -1);
  const at::Tensor weights = tensor_of_array(run->quantities.find(WeightsKey{})->weights);
  EXPECT_TRUE(at::allclose(weights.slice(1, 0, 3).slice(2, 3), expected, 1e-5, 1e-6));
}

TEST(CaptureMeasure, KlIsTheMeanOverSequencesOfSeveralCaptures) {
  TeacherForcedRequest request;
  request.model_folder = recorded("bert");
  request.data = {recorded("bert")};
  request.kernels = {{"elu", {}}, {"hydra-cosine", {}}};
  const TeacherForcedOutcome outcome = measure_teacher_forced(request);
  ASSERT_EQ(outcome.measures.size(), 2U);
  EXPECT_EQ(outcome.measures[0].items, 2);
  double sum = 0;
  for (const char* item : {":0:0", ":0:1"}) {
    const HeadTableKey key{"kl", KernelSpec{"elu", {}}};
    const auto run = Runner().run(request_for(recorded("bert") + item, {key}));
    sum += tensor_of_array(run->quantities.find(key)->values).mean().item<double>();
  }
  EXPECT_NEAR(outcome.measures[0].mean.kl, sum / 2, 1e-5);
  EXPECT_TRUE(std::isnan(outcome.measures[1].mean.kl));
  EXPECT_TRUE(std::isfinite(outcome.measures[1].mean.relative_error));

  request.data = {test::source_folder() / "tests" / "golden" / "captures"}; // of other models, too
  EXPECT_THROW(measure_teacher_forced(request), UsageError);
  request.data = {recorded("whisper")};
  request.model_folder = recorded("whisper") + ":2";
  EXPECT_EQ(measure_teacher_forced(request).measures.front().items, 1);
}

TEST(CaptureTraining, MapsAreDistilledOnCapturesAndApplyToOthersOfTheModel) {
  at::manual_seed(11);
  const auto layer = [](double sharp) {
    return std::map<std::string, at::Tensor>{{"layers.0.q", at::randn({3, 2, 10, 4}) * sharp},
                                             {"layers.0.k", at::randn({3, 2, 10, 4}) * sharp},
                                             {"layers.0.v", at::randn({3, 2, 10, 4})}};
  };
  const HandMade files(layer(2));
  files.write("later.safetensors", layer(2));
  DistillRequest request;
  request.settings.model_folder = files.file();
  request.settings.output = files.folder() / "maps" / "maps.safetensors";
  fs::create_directories(files.folder() / "maps");
  request.settings.epochs = 12;
  request.settings.patience = 0;
  request.settings.batch = 2;
  request.settings.validation_share = 0.2;
  request.kernel = {"hedgehog", {}};
  request.data = {files.folder()};
  const TrainingOutcome outcome = distill(request);
  EXPECT_LT(outcome.held_out.divergence, outcome.before.divergence);

  const HeadTableKey key{"kl", KernelSpec{"hedgehog", {}}};
  RunRequest run = request_for(files.file("later.safetensors") + ":0:2", {key});
  const auto untrained = Runner().run(run);
  EXPECT_TRUE(untrained->quantities.find(key)->untrained);
  run.adapters = {.automatic = false, .files = {request.settings.output}};
  const auto trained = Runner().run(run);
  EXPECT_FALSE(trained->quantities.find(key)->untrained);
  EXPECT_LT(tensor_of_array(trained->quantities.find(key)->values).mean().item<double>(),
            tensor_of_array(untrained->quantities.find(key)->values).mean().item<double>());

  // One sequence is trained and measured on the same; cross-attention has maps as well.
  request.data = {recorded("whisper")};
  request.settings.model_folder = recorded("whisper") + ":2";
  request.settings.output = files.folder() / "maps" / "cross.safetensors";
  const TrainingOutcome cross = distill(request);
  EXPECT_LT(cross.held_out.divergence, cross.before.divergence);
  EXPECT_FALSE(cross.notes.empty());
}

// Its sequences have addresses as those of a file.
TEST(CaptureTraining, AFolderThatHoldsOneCaptureIsReadSequenceBySequence) {
  at::manual_seed(14);
  const auto layer = [](const std::string& name) {
    return std::map<std::string, at::Tensor>{{name + ".q", at::randn({3, 2, 10, 4}) * 2},
                                             {name + ".k", at::randn({3, 2, 10, 4}) * 2},
                                             {name + ".v", at::randn({3, 2, 10, 4})}};
  };
  const HandMade files(layer("layers.0"));
  files.write("later.safetensors", layer("layers.1"));
  const ModelInfo info = read_capture_info(files.folder());
  EXPECT_EQ(info.layers, 2);
  EXPECT_EQ(capture_sequences({files.folder()}, info).size(), 3U);
  EXPECT_EQ(read_capture_info(files.folder().string() + ":0:2").capture->item, 2);
  DistillRequest request;
  request.settings.model_folder = files.folder();
  request.settings.epochs = 12;
  request.settings.patience = 0;
  request.settings.batch = 2;
  request.settings.output = files.folder() / "maps" / "maps.safetensors";
  request.kernel = {"hedgehog", {}};
  request.data = {files.folder()};
  EXPECT_EQ(distill(request).adapter.layers.size(), 2U);
  EXPECT_THROW(read_capture_info(files.folder().string() + ":0:3"), UsageError);
}

// The training's own files may lie in the folder.
TEST(CaptureTraining, GoesOnWithTheSameCapturesAlone) {
  at::manual_seed(12);
  const auto layer = [] {
    return std::map<std::string, at::Tensor>{{"layers.0.q", at::randn({3, 2, 10, 4})},
                                             {"layers.0.k", at::randn({3, 2, 10, 4})},
                                             {"layers.0.v", at::randn({3, 2, 10, 4})}};
  };
  const HandMade files(layer());
  files.write("later.safetensors", layer());
  const fs::path later = files.file("later.safetensors");
  DistillRequest request;
  request.settings.model_folder = files.file();
  request.settings.output = files.folder() / "maps.safetensors";
  request.settings.batch = 2;
  request.settings.validation_share = 0.2;
  request.kernel = {"hedgehog", {}};
  std::stop_source source;
  source.request_stop();
  const auto stopped = [&](const bool resume) {
    request.settings.resume = resume;
    return distill(request, {}, source.get_token()).stopped;
  };
  const auto make_newer = [&] {
    fs::last_write_time(later, fs::last_write_time(later) + std::chrono::seconds(1));
  };
  request.data = {files.folder()};
  EXPECT_TRUE(stopped(false));
  EXPECT_TRUE(stopped(true));
  make_newer();
  EXPECT_THROW(stopped(true), UsageError);
  request.data = {later}; // whose bytes are read
  EXPECT_TRUE(stopped(false));
  make_newer();
  EXPECT_TRUE(stopped(true));
}

} // namespace
} // namespace hydrascope
