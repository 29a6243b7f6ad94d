// Teacher-forced measuring against sums written out text by text, head by head and row by row.
#include "engine/runtime/teacher_forced.h"

#include <cmath>
#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/remainder.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/inspect/inspect.h"
#include "engine/inspect/monotonicity.h"
#include "engine/plain/error.h"
#include "engine/run/quantities/head_reader.h"
#include "tests/engine/models/golden.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using test::message_of;
using ::testing::HasSubstr;
using testing::make_toy_model;
using testing::make_toy_pictures;
using testing::ToyFolder;

const std::vector<std::string> sentences = {
    "the cat sat on a mat", "hydra attention is linear not soft",      "sum over the token",        "a word",
    "not on the mat ! ? -", "tokenize the head over a linear softmax", "the linear sum is not soft"};

TeacherForcedRequest request_for(const ToyFolder& folder, const std::string& kernels) {
  std::ofstream file(folder / "texts.txt");
  for (const std::string& sentence : sentences) file << sentence << "\n";
  TeacherForcedRequest request;
  request.model_folder = make_toy_model(folder, "bert");
  request.adapters.automatic = false;
  request.data = {folder / "texts.txt"};
  request.kernels = parse_kernel_list(kernels);
  return request;
}

// The softmax run, block by block, of one text without its padding.
std::vector<AttentionInput> layers_of(const Model& model, const ModelInput& input) {
  const at::NoGradGuard no_gradients;
  std::vector<AttentionInput> layers;
  at::Tensor hidden = model.embed(input);
  for (int layer = 0; layer < model.info().layers; ++layer) {
    AttentionTap tap;
    hidden = model.block(layer, hidden, input, *make_kernel({}), {}, &tap);
    layers.push_back(tap.input);
  }
  return layers;
}

struct Expected {
  double kl = 0, entropy = 0, spearman = 0, clamped = 0, ratio = 0, cosine = 0, error = 0;
};

// Mean over heads of the mean over rows, of one sequence, in float64 and by loops.
Expected expected_of(const AttentionInput& input, const std::string& kernel_text) {
  const auto kernel = make_kernel(parse_kernel_spec(kernel_text));
  const std::int64_t heads = input.q.size(1), tokens = input.q.size(2);
  const KernelParameters parameters = kernel->initial_parameters(heads, input.q.size(3));
  const at::Tensor p = make_kernel({})->weights(input, {}).to(at::kDouble)[0];
  const at::Tensor w = kernel->weights(input, parameters).to(at::kDouble)[0];
  const at::Tensor softmax_out = make_kernel({})->run(input, {}).out.to(at::kDouble)[0];
  const at::Tensor out = kernel->run(input, parameters).out.to(at::kDouble)[0];
  Expected mean;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t row = 0; row < tokens; ++row)
      for (std::int64_t key = 0; key < tokens; ++key) {
        const double reference = p[h][row][key].item<double>(), weight = w[h][row][key].item<double>();
        const double share = 1.0 / static_cast<double>(tokens * heads);
        mean.kl +=
            share * reference * (std::log(std::max(reference, 1e-12)) - std::log(std::max(weight, 1e-12)));
        if (weight > 0) mean.entropy -= share * weight * std::log(weight);
        if (std::min(reference, weight) < 1e-12) mean.clamped += share / static_cast<double>(tokens);
      }
    const at::Tensor a = softmax_out[h].flatten(), b = out[h].flatten();
    const double share = 1.0 / static_cast<double>(heads);
    mean.ratio += share * (b.norm() / a.norm()).item<double>();
    mean.cosine += share * ((a * b).sum() / (a.norm() * b.norm())).item<double>();
    mean.error += share * ((b - a).norm() / a.norm()).item<double>();
  }
  mean.spearman = monotonicity(w.unsqueeze(0), attention_scores(input)).mean().item<double>();
  return mean;
}

void expect_means(const KernelMeans& means, const Expected& expected) {
  EXPECT_NEAR(means.kl, expected.kl, 1e-5);
  EXPECT_NEAR(means.entropy, expected.entropy, 1e-5);
  EXPECT_NEAR(means.spearman, expected.spearman, 1e-6);
  EXPECT_NEAR(means.clamped_share, expected.clamped, 1e-9);
  EXPECT_NEAR(means.ratio, expected.ratio, 1e-5);
  EXPECT_NEAR(means.cosine, expected.cosine, 1e-5);
  EXPECT_NEAR(means.relative_error, expected.error, 1e-5);
}

void add(Expected& sum, const Expected& one, double share) {
  for (const auto member : {&Expected::kl, &Expected::entropy, &Expected::spearman, &Expected::clamped,
                            &Expected::ratio, &Expected::cosine, &Expected::error})
    sum.*member += share * one.*member;
}

TEST(TeacherForced, EachTextCountsTheSame) {
  const ToyFolder folder;
  const TeacherForcedRequest request = request_for(folder, "softmax,elu,relu,hedgehog-untrained");
  const TeacherForcedOutcome outcome = measure_teacher_forced(request);
  const auto model = load_model(request.model_folder);
  ASSERT_EQ(outcome.measures.size(), 4U);
  for (const KernelMeasure& measure : outcome.measures) {
    SCOPED_TRACE(measure.kernel.text());
    ASSERT_EQ(measure.layers.size(), 2U);
    EXPECT_EQ(measure.items, 7);
    EXPECT_FALSE(measure.length);
    Expected whole;
    for (std::size_t layer = 0; layer < 2; ++layer) {
      Expected of_layer;
      for (const std::string& sentence : sentences)
        add(of_layer,
            expected_of(layers_of(*model, model->prepare_text(sentence))[layer], measure.kernel.text()),
            1.0 / 7);
      expect_means(measure.layers[layer], of_layer);
      add(whole, of_layer, 0.5);
    }
    expect_means(measure.mean, whole);
  }
  EXPECT_NEAR(outcome.measures[0].mean.kl, 0, 1e-9);
  EXPECT_GT(outcome.measures[2].mean.clamped_share, 0.05) << "relu has exact zeros";
}

TEST(TeacherForced, SignedWeightsHaveNoDivergence) {
  const ToyFolder folder;
  const auto outcome = measure_teacher_forced(request_for(folder, "hydra-cosine"));
  const KernelMeans& mean = outcome.measures.front().mean;
  EXPECT_TRUE(std::isnan(mean.kl));
  EXPECT_TRUE(std::isnan(mean.entropy));
  EXPECT_TRUE(std::isnan(mean.clamped_share));
  EXPECT_GT(mean.ratio, 0);
  EXPECT_LE(std::abs(mean.cosine), 1);
  EXPECT_LE(std::abs(mean.spearman), 1);
}

TEST(TeacherForced, OtherHeadsHaveNoDivergenceButTheirOwnEntropyAndOrder) {
  const ToyFolder folder;
  TeacherForcedRequest request = request_for(folder, "softmax:heads=6");
  request.limit = 1;
  const auto outcome = measure_teacher_forced(request);
  const KernelMeans& mean = outcome.measures.front().mean;
  EXPECT_TRUE(std::isnan(mean.kl));
  const auto model = load_model(request.model_folder);
  double entropies = 0, order = 0;
  for (const AttentionInput& layer : layers_of(*model, model->prepare_text(sentences.front()))) {
    const at::Tensor weights = make_kernel(request.kernels.front())->weights(layer, {});
    ASSERT_EQ(weights.size(1), 6);
    entropies += 0.5 * entropy(weights).mean().item<double>();
    order += 0.5 * monotonicity(weights, attention_scores(layer, {}, 6)).mean().item<double>();
  }
  EXPECT_NEAR(mean.entropy, entropies, 1e-6);
  EXPECT_NEAR(mean.spearman, order, 1e-9);
}

TEST(TeacherForced, DefaultIsEveryKernelWithADivergence) {
  const ToyFolder folder;
  TeacherForcedRequest request = request_for(folder, "softmax");
  request.kernels.clear();
  request.limit = 2;
  const auto outcome = measure_teacher_forced(request);
  std::vector<std::string> expected, measured;
  for (const KernelInfo& info : kernel_infos())
    if (info.normalised && info.weights_positive) expected.push_back(info.name);
  for (const KernelMeasure& measure : outcome.measures) {
    measured.push_back(measure.kernel.name);
    EXPECT_TRUE(std::isfinite(measure.mean.kl)) << measure.kernel.name;
    EXPECT_EQ(measure.untrained, kernel_info(measure.kernel.name).trainable) << measure.kernel.name;
  }
  EXPECT_EQ(measured, expected);
}

TEST(TeacherForced, LengthsConcatenateQueriesAndKeysOfConsecutiveTexts) {
  const ToyFolder folder;
  TeacherForcedRequest request = request_for(folder, "softmax,elu,relu");
  request.lengths = {12, 30};
  const auto outcome = measure_teacher_forced(request);
  const auto model = load_model(request.model_folder);
  std::vector<std::vector<AttentionInput>> texts;
  for (const std::string& sentence : sentences)
    texts.push_back(layers_of(*model, model->prepare_text(sentence)));
  ASSERT_EQ(outcome.measures.size(), 6U);
  for (const KernelMeasure& measure : outcome.measures) {
    SCOPED_TRACE(measure.kernel.text());
    Expected whole;
    for (std::size_t layer = 0; layer < 2; ++layer) {
      std::vector<at::Tensor> q, k, v;
      for (const auto& text : texts) {
        q.push_back(text[layer].q);
        k.push_back(text[layer].k);
        v.push_back(text[layer].v);
      }
      AttentionInput all;
      all.q = at::cat(q, 2);
      all.k = at::cat(k, 2);
      all.v = at::cat(v, 2);
      const std::int64_t pieces = all.q.size(2) / *measure.length;
      EXPECT_EQ(measure.items, pieces);
      EXPECT_EQ(measure.tokens, pieces * *measure.length);
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        AttentionInput one;
        const std::int64_t first = piece * *measure.length, end = first + *measure.length;
        one.q = all.q.slice(2, first, end);
        one.k = all.k.slice(2, first, end);
        one.v = all.v.slice(2, first, end);
        add(whole, expected_of(one, measure.kernel.text()), 0.5 / static_cast<double>(pieces));
      }
    }
    expect_means(measure.mean, whole);
  }
}

TEST(TeacherForced, JoinedTextsAreOneWithPositionsThatBeginAgain) {
  const ToyFolder folder;
  TeacherForcedRequest request = request_for(folder, "elu");
  request.joined = true;
  const auto outcome = measure_teacher_forced(request);
  ASSERT_EQ(outcome.notes.size(), 1U);
  EXPECT_THAT(outcome.notes.front(), HasSubstr("begin again after every 24"));
  // The same text token by token: [CLS], the words of all, [SEP].
  const auto model = load_model(request.model_folder);
  std::vector<at::Tensor> ids;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const at::Tensor one = model->prepare_text(sentences[i]).token_ids;
    ids.push_back(one.slice(1, i == 0 ? 0 : 1, i + 1 == sentences.size() ? one.size(1) : one.size(1) - 1));
  }
  ModelInput input;
  input.token_ids = at::cat(ids, 1);
  const std::int64_t tokens = input.token_ids.size(1);
  ASSERT_GT(tokens, 24);
  input.positions = at::remainder(at::arange(tokens, at::kLong), 24);
  const auto layers = layers_of(*model, input);
  Expected expected;
  for (const AttentionInput& layer : layers) add(expected, expected_of(layer, "elu"), 0.5);
  const KernelMeasure& measure = outcome.measures.front();
  EXPECT_EQ(measure.items, 1);
  EXPECT_EQ(measure.length, tokens);
  expect_means(measure.mean, expected);

  request.lengths = {20};
  const auto pieces = measure_teacher_forced(request);
  EXPECT_EQ(pieces.measures.front().length, 20);
  EXPECT_EQ(pieces.measures.front().items, (tokens - 2) / 18);
}

TEST(TeacherForced, ScoresAreTheRangeOverAllTexts) {
  const ToyFolder folder;
  const TeacherForcedRequest request = request_for(folder, "softmax");
  const auto outcome = measure_teacher_forced(request);
  const auto model = load_model(request.model_folder);
  ASSERT_EQ(outcome.scores.size(), 1U);
  ASSERT_EQ(outcome.scores.front().layers.size(), 2U);
  HeadScores expected;
  for (const std::string& sentence : sentences) {
    const at::Tensor scores =
        attention_scores(layers_of(*model, model->prepare_text(sentence))[1]).select(1, 2);
    expected.smallest = std::min(expected.smallest, scores.min().item<double>());
    expected.largest = std::max(expected.largest, scores.max().item<double>());
    expected.share_below += (scores < -1).to(at::kDouble).mean().item<double>() / 7;
  }
  const HeadScores& measured = outcome.scores.front().layers[1].at(2);
  EXPECT_NEAR(measured.smallest, expected.smallest, 1e-4);
  EXPECT_NEAR(measured.largest, expected.largest, 1e-4);
  EXPECT_NEAR(measured.share_below, expected.share_below, 1e-9);
}

TEST(TeacherForced, PicturesOfAFolder) {
  const ToyFolder folder;
  TeacherForcedRequest request;
  request.model_folder = make_toy_model(folder, "dinov2");
  request.adapters.automatic = false;
  request.data = {make_toy_pictures(folder, 2)};
  std::ofstream(folder / "pictures" / "labels.txt") << "not a picture\n";
  request.kernels = parse_kernel_list("softmax,elu");
  std::int64_t last = 0, all = 0;
  const auto outcome = measure_teacher_forced(request, [&](std::int64_t done, std::int64_t total) {
    EXPECT_GT(done, last);
    last = done;
    all = total;
  });
  ASSERT_EQ(outcome.measures.size(), 2U);
  EXPECT_EQ(outcome.measures[1].items, 6);
  EXPECT_GT(outcome.measures[1].mean.kl, 0);
  EXPECT_EQ(last, 6 * 2);
  EXPECT_GE(all, last);
  request.lengths = {4};
  EXPECT_THAT(message_of<UsageError>([&] { measure_teacher_forced(request); }), HasSubstr("--lengths"));
}

TEST(TeacherForced, CanBeStopped) {
  const ToyFolder folder;
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(measure_teacher_forced(request_for(folder, "elu"), {}, source.get_token()), Cancelled);
}

TEST(TeacherForced, BadRequestsSayWhatIsWrong) {
  const ToyFolder folder;
  const TeacherForcedRequest good = request_for(folder, "elu");
  TeacherForcedRequest bad = good;
  bad.lengths = {9999};
  EXPECT_THAT(message_of<UsageError>([&] { measure_teacher_forced(bad); }), HasSubstr("--lengths 9999"));
  bad.joined = true;
  EXPECT_THAT(message_of<UsageError>([&] { measure_teacher_forced(bad); }), HasSubstr("--lengths 9999"));
  bad = good;
  bad.kernels = parse_kernel_list("softmax:heads=7");
  EXPECT_THAT(message_of<UsageError>([&] { measure_teacher_forced(bad); }), HasSubstr("heads=7"));
  bad = good;
  bad.data = {folder / "none.txt"};
  EXPECT_THAT(message_of<Error>([&] { measure_teacher_forced(bad); }), HasSubstr("none.txt"));
  bad = good;
  bad.column = 2;
  EXPECT_THAT(message_of<Error>([&] { measure_teacher_forced(bad); }), HasSubstr("line 1 has no column 2"));
  std::ofstream(folder / "empty.txt") << "\n\n";
  bad = good;
  bad.data = {folder / "empty.txt"};
  EXPECT_THAT(message_of<Error>([&] { measure_teacher_forced(bad); }), HasSubstr("empty.txt"));
  bad = good;
  bad.data = {folder.path()};
  EXPECT_THAT(message_of<UsageError>([&] { measure_teacher_forced(bad); }), HasSubstr("folder"));
}

TEST(HeadReader, PaddingChangesNothing) {
  const auto softmax = make_kernel({});
  AttentionInput padded;
  padded.q = at::randn({3, 2, 9, 4});
  padded.k = at::randn({3, 2, 9, 4});
  padded.v = at::randn({3, 2, 9, 4});
  padded.mask = at::ones({3, 9}, at::kBool);
  for (std::int64_t b = 0; b < 3; ++b) padded.mask[b].slice(0, 4 + 2 * b).fill_(false);
  std::vector<LayerKernel> kernels(3);
  kernels[0].kernel = make_kernel(parse_kernel_spec("softmax"));
  kernels[1].kernel = make_kernel(parse_kernel_spec("elu"));
  kernels[2].kernel = make_kernel(parse_kernel_spec("relu"));
  const std::vector<const HeadQuantity*> quantities = {&head_quantity("entropy"), &head_quantity("kl"),
                                                       &head_quantity("monotonicity"),
                                                       &head_quantity("change")};
  const auto together = read_heads(quantities, padded, kernels);
  for (std::int64_t b = 0; b < 3; ++b) {
    AttentionInput alone;
    alone.q = padded.q.slice(0, b, b + 1).slice(2, 0, 4 + 2 * b);
    alone.k = padded.k.slice(0, b, b + 1).slice(2, 0, 4 + 2 * b);
    alone.v = padded.v.slice(0, b, b + 1).slice(2, 0, 4 + 2 * b);
    const auto single = read_heads(quantities, alone, kernels);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      for (std::size_t j = 0; j < quantities.size(); ++j)
        EXPECT_TRUE(together[i].values[j].values[b].allclose(single[i].values[j].values[0], 1e-5, 1e-5))
            << quantities[j]->info.name;
    }
  }
}

TEST(HeadReader, TilesOfRowsGiveTheWholeMatrixsMeans) {
  AttentionInput input; // 2900² float32 are two tiles
  input.q = at::randn({1, 1, 2900, 4});
  input.k = at::randn({1, 1, 2900, 4});
  input.v = at::randn({1, 1, 2900, 4});
  std::vector<LayerKernel> kernels(1);
  kernels[0].kernel = make_kernel(parse_kernel_spec("relu"));
  const std::vector<const HeadQuantity*> quantities = {&head_quantity("entropy"), &head_quantity("kl"),
                                                       &head_quantity("monotonicity")};
  const auto read = read_heads(quantities, input, kernels).front().values;
  const at::Tensor weights = kernels[0].kernel->weights(input, {});
  const Divergence divergence = kl_divergence(make_kernel({})->weights(input, {}), weights);
  EXPECT_NEAR(read[0].values.item<double>(), entropy(weights).item<double>(), 1e-5);
  EXPECT_NEAR(read[1].values.item<double>(), divergence.kl.item<double>(), 1e-5);
  EXPECT_NEAR(read[1].clamped_share, divergence.clamped_share, 1e-9);
  EXPECT_NEAR(read[2].values.item<double>(), monotonicity(weights, attention_scores(input)).item<double>(),
              1e-6);
}

} // namespace
} // namespace hydrascope
