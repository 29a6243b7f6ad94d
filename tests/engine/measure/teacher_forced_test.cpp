// Teacher-forced measuring against sums written out text by text, head by head and row by row.
#include "engine/measure/teacher_forced.h"

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

#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/run/quantities/head_reader.h"
#include "tests/engine/attention/reference.h"
#include "tests/engine/models/golden.h"
#include "tests/engine/run/quantities/spearman_definition.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using test::message_of;
using ::testing::HasSubstr;
using testing::make_toy_model;
using testing::make_toy_pictures;
using testing::toy_measuring;
using testing::toy_sentences;
using testing::ToyFolder;

// The softmax run, block by block, of one text without its padding.
std::vector<AttentionInput> layers_of(const Model& model, const ModelInput& input) {
  const at::NoGradGuard no_gradients;
  std::vector<AttentionInput> layers;
  at::Tensor hidden = model.embed(input);
  for (int layer = 0; layer < model.info().layers; ++layer) {
    AttentionTap tap;
    hidden = model.block(layer, hidden, input, *make_kernel({}), {}, {.tap = &tap});
    layers.push_back(tap.input);
  }
  return layers;
}

struct Expected {
  double kl = 0, entropy = 0, spearman = 0, clamped = 0, ratio = 0, cosine = 0, error = 0;
};

// Mean over heads of the mean over rows, of one sequence: by loops over the reference's weights and outputs,
// which are in double precision as q, k and v are here.
Expected expected_of(const AttentionInput& input, const std::string& kernel_text) {
  const std::int64_t heads = input.q.size(1), tokens = input.q.size(2), width = input.q.size(3);
  const KernelParameters parameters =
      make_kernel(parse_kernel_spec(kernel_text))->initial_parameters({heads, width});
  const reference::Result softmax = reference::row("softmax").compute(input, {}, input.v);
  const reference::Result kernel = reference::row(kernel_text).compute(input, parameters, input.v);
  const auto p = softmax.weights.accessor<double, 4>()[0], w = kernel.weights.accessor<double, 4>()[0];
  const auto softmax_out = softmax.out.accessor<double, 4>()[0], out = kernel.out.accessor<double, 4>()[0];
  const at::Tensor q_double = input.q.to(at::kDouble), k_double = input.k.to(at::kDouble);
  const auto q = q_double.accessor<double, 4>()[0], k = k_double.accessor<double, 4>()[0];
  const double of_head = 1.0 / static_cast<double>(heads), of_row = of_head / static_cast<double>(tokens);
  Expected mean;
  for (std::int64_t h = 0; h < heads; ++h) {
    double aa = 0, bb = 0, ab = 0, difference = 0;
    for (std::int64_t row = 0; row < tokens; ++row) {
      std::vector<double> weights, scores;
      for (std::int64_t key = 0; key < tokens; ++key) {
        const double exact = p[h][row][key], weight = w[h][row][key];
        mean.kl += of_row * exact * (std::log(std::max(exact, 1e-12)) - std::log(std::max(weight, 1e-12)));
        if (weight > 0) mean.entropy -= of_row * weight * std::log(weight);
        if (std::min(exact, weight) < 1e-12) mean.clamped += of_row / static_cast<double>(tokens);
        double score = 0;
        for (std::int64_t c = 0; c < width; ++c) score += q[h][row][c] * k[h][key][c];
        weights.push_back(static_cast<float>(weight)); // those that float32 cannot hold are ties at 0
        scores.push_back(score / std::sqrt(static_cast<double>(width)));
      }
      mean.spearman += of_row * test::spearman_by_definition(weights, scores);
      for (std::int64_t c = 0; c < width; ++c) {
        const double a = softmax_out[h][row][c], b = out[h][row][c];
        aa += a * a;
        bb += b * b;
        ab += a * b;
        difference += (b - a) * (b - a);
      }
    }
    mean.ratio += of_head * std::sqrt(bb / aa);
    mean.cosine += of_head * ab / std::sqrt(aa * bb);
    mean.error += of_head * std::sqrt(difference / aa);
  }
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
  const TeacherForcedRequest request = toy_measuring(folder, "softmax,elu,relu,hedgehog-untrained");
  const TeacherForcedOutcome outcome = measure_teacher_forced(request);
  const auto model = load_model(request.model_folder);
  ASSERT_EQ(outcome.measures.size(), 4U);
  for (const KernelMeasure& measure : outcome.measures) {
    SCOPED_TRACE(measure.kernel.text());
    ASSERT_EQ(measure.layers.size(), 2U);
    EXPECT_EQ(measure.items, 7);
    EXPECT_FALSE(measure.length);
    Expected whole;
    std::vector<double> kl_of_texts(7);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      Expected of_layer;
      for (std::size_t i = 0; i < 7; ++i) {
        const auto layers = layers_of(*model, model->prepare_text(toy_sentences()[i]));
        const Expected one = expected_of(layers[layer], measure.kernel.text());
        add(of_layer, one, 1.0 / 7);
        kl_of_texts[i] += one.kl / 2;
      }
      expect_means(measure.layers[layer], of_layer);
      add(whole, of_layer, 0.5);
    }
    expect_means(measure.mean, whole);
    double squares = 0;
    for (const double kl : kl_of_texts) squares += (kl - whole.kl) * (kl - whole.kl);
    EXPECT_NEAR(measure.kl_error, std::sqrt(squares / 6 / 7), 1e-5);
  }
  EXPECT_NEAR(outcome.measures[0].mean.kl, 0, 1e-9);
  EXPECT_GT(outcome.measures[2].mean.clamped_share, 0.05) << "relu has exact zeros";
}

TEST(TeacherForced, SignedWeightsHaveNoDivergence) {
  const ToyFolder folder;
  const auto outcome = measure_teacher_forced(toy_measuring(folder, "hydra-cosine"));
  const KernelMeans& mean = outcome.measures.front().mean;
  EXPECT_TRUE(std::isnan(mean.kl));
  EXPECT_TRUE(std::isnan(outcome.measures.front().kl_error));
  EXPECT_TRUE(std::isnan(mean.entropy));
  EXPECT_TRUE(std::isnan(mean.clamped_share));
  const auto model = load_model(folder / "bert");
  Expected expected;
  for (const std::string& sentence : toy_sentences())
    for (const AttentionInput& layer : layers_of(*model, model->prepare_text(sentence)))
      add(expected, expected_of(layer, "hydra-cosine"), 1.0 / 14);
  EXPECT_NEAR(mean.spearman, expected.spearman, 1e-6);
  EXPECT_NEAR(mean.ratio, expected.ratio, 1e-5);
  EXPECT_NEAR(mean.cosine, expected.cosine, 1e-5);
  EXPECT_NEAR(mean.relative_error, expected.error, 1e-5);
}

TEST(TeacherForced, OtherHeadsHaveNoDivergenceButTheirOwnEntropyAndOrder) {
  const ToyFolder folder;
  TeacherForcedRequest request = toy_measuring(folder, "softmax:heads=6");
  request.limit = 1;
  const auto outcome = measure_teacher_forced(request);
  const KernelMeans& mean = outcome.measures.front().mean;
  EXPECT_TRUE(std::isnan(mean.kl));
  const auto model = load_model(request.model_folder);
  Expected expected;
  for (const AttentionInput& layer : layers_of(*model, model->prepare_text(toy_sentences().front()))) {
    // The same 24 features of every token in six heads of four: softmax of those is the kernel.
    AttentionInput cut;
    const auto in_six = [](const at::Tensor& x) {
      return x.transpose(1, 2).reshape({1, x.size(2), 6, 4}).transpose(1, 2);
    };
    cut.q = in_six(layer.q);
    cut.k = in_six(layer.k);
    cut.v = in_six(layer.v);
    add(expected, expected_of(cut, "softmax"), 0.5);
  }
  EXPECT_NEAR(mean.entropy, expected.entropy, 1e-6);
  EXPECT_NEAR(mean.spearman, expected.spearman, 1e-9);
}

TEST(TeacherForced, DefaultIsEveryKernelWithADivergence) {
  const ToyFolder folder;
  TeacherForcedRequest request = toy_measuring(folder, "softmax");
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
  TeacherForcedRequest request = toy_measuring(folder, "softmax,elu,relu");
  request.lengths = {12, 30};
  const auto outcome = measure_teacher_forced(request);
  const auto model = load_model(request.model_folder);
  std::vector<std::vector<AttentionInput>> texts;
  for (const std::string& sentence : toy_sentences())
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
  TeacherForcedRequest request = toy_measuring(folder, "elu");
  request.joined = true;
  const auto outcome = measure_teacher_forced(request);
  ASSERT_EQ(outcome.notes.size(), 1U);
  EXPECT_THAT(outcome.notes.front(), HasSubstr("begin again after every 24"));
  // The same text token by token: [CLS], the words of all, [SEP].
  const auto model = load_model(request.model_folder);
  std::vector<at::Tensor> ids;
  for (std::size_t i = 0; i < toy_sentences().size(); ++i) {
    const at::Tensor one = model->prepare_text(toy_sentences()[i]).token_ids;
    ids.push_back(
        one.slice(1, i == 0 ? 0 : 1, i + 1 == toy_sentences().size() ? one.size(1) : one.size(1) - 1));
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

// q·k/√d by loops, in double precision.
TEST(TeacherForced, ScoresAreTheRangeOverAllTexts) {
  const ToyFolder folder;
  const TeacherForcedRequest request = toy_measuring(folder, "softmax");
  const auto outcome = measure_teacher_forced(request);
  const auto model = load_model(request.model_folder);
  ASSERT_EQ(outcome.scores.size(), 1U);
  ASSERT_EQ(outcome.scores.front().layers.size(), 2U);
  HeadScores expected;
  for (const std::string& sentence : toy_sentences()) {
    const AttentionInput layer = layers_of(*model, model->prepare_text(sentence))[1];
    const at::Tensor q_double = layer.q.to(at::kDouble), k_double = layer.k.to(at::kDouble);
    const auto q = q_double.accessor<double, 4>()[0][2], k = k_double.accessor<double, 4>()[0][2];
    double below = 0;
    for (std::int64_t row = 0; row < q.size(0); ++row)
      for (std::int64_t key = 0; key < k.size(0); ++key) {
        double score = 0;
        for (std::int64_t c = 0; c < q.size(1); ++c) score += q[row][c] * k[key][c];
        score /= std::sqrt(static_cast<double>(q.size(1)));
        expected.smallest = std::min(expected.smallest, score);
        expected.largest = std::max(expected.largest, score);
        below += score < -1 ? 1 : 0;
      }
    expected.share_below += below / static_cast<double>(q.size(0) * k.size(0)) / 7;
  }
  const HeadScores& measured = outcome.scores.front().layers[1].at(2);
  EXPECT_NEAR(measured.smallest, expected.smallest, 1e-6 * std::abs(expected.smallest));
  EXPECT_NEAR(measured.largest, expected.largest, 1e-6 * std::abs(expected.largest));
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
  const auto model = load_model(request.model_folder);
  Expected expected;
  for (const char* name : {"red/0", "red/1", "green/0", "green/1", "blue/0", "blue/1"}) {
    const Image image = load_image(folder / ("pictures/" + std::string(name) + ".ppm"));
    for (const AttentionInput& layer : layers_of(*model, model->prepare_image(image, {})))
      add(expected, expected_of(layer, "elu"), 1.0 / (6 * 2));
  }
  expect_means(outcome.measures[1].mean, expected);
  EXPECT_EQ(last, 6 * 2);
  EXPECT_GE(all, last);
  request.lengths = {4};
  EXPECT_THAT(message_of<UsageError>([&] { measure_teacher_forced(request); }), HasSubstr("--lengths"));
}

// Each pair is one input, whose second text has the second token type.
TEST(TeacherForced, PairsAreOneInput) {
  const ToyFolder folder;
  TeacherForcedRequest request = toy_measuring(folder, "elu");
  const std::vector<std::pair<std::string, std::string>> pairs = {{"the cat sat on a mat", "a word"},
                                                                  {"sum over the token", "not soft"},
                                                                  {"a mat", "the head over a mat"}};
  {
    std::ofstream table(folder / "pairs.tsv");
    table << "first\tlabel\tsecond\n";
    for (const auto& [first, second] : pairs) table << first << "\t1\t" << second << "\n";
  }
  request.data = {folder / "pairs.tsv"};
  request.header = true;
  request.column = 1;
  const auto alone = measure_teacher_forced(request);
  request.pair_column = 3;
  const auto together = measure_teacher_forced(request);
  const auto model = load_model(request.model_folder);
  Expected expected;
  std::int64_t tokens = 0;
  for (const auto& [first, second] : pairs) {
    const ModelInput input = model->prepare_text(first, second);
    tokens += input.token_ids.size(1);
    for (const AttentionInput& layer : layers_of(*model, input))
      add(expected, expected_of(layer, "elu"), 1.0 / (3 * 2));
  }
  ASSERT_EQ(together.measures.size(), 1U);
  EXPECT_EQ(together.measures[0].items, 3);
  EXPECT_EQ(together.measures[0].tokens, tokens);
  EXPECT_GT(together.measures[0].tokens, alone.measures[0].tokens);
  expect_means(together.measures[0].mean, expected);
  request.lengths = {8};
  EXPECT_EQ(measure_teacher_forced(request).measures[0].items, tokens / 8);

  request.lengths = {};
  request.joined = true;
  EXPECT_THAT(message_of<UsageError>([&] { measure_teacher_forced(request); }), HasSubstr("--pair-column"));
  request.joined = false;
  request.pair_column = 1;
  EXPECT_THAT(message_of<UsageError>([&] { measure_teacher_forced(request); }), HasSubstr("--pair-column"));
}

TEST(TeacherForced, CanBeStopped) {
  const ToyFolder folder;
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(measure_teacher_forced(toy_measuring(folder, "elu"), {}, source.get_token()), Cancelled);
}

TEST(TeacherForced, BadRequestsSayWhatIsWrong) {
  const ToyFolder folder;
  const TeacherForcedRequest good = toy_measuring(folder, "elu");
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

// Each sequence of a padded batch has the values that it has by the definition, without padding.
TEST(HeadReader, PaddingChangesNothing) {
  AttentionInput padded;
  padded.q = at::randn({3, 2, 9, 4});
  padded.k = at::randn({3, 2, 9, 4});
  padded.v = at::randn({3, 2, 9, 4});
  padded.mask = at::ones({3, 9}, at::kBool);
  for (std::int64_t b = 0; b < 3; ++b) padded.mask[b].slice(0, 4 + 2 * b).fill_(false);
  const std::vector<std::string> names = {"softmax", "elu", "relu"};
  std::vector<LayerKernel> kernels(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) kernels[i].kernel = make_kernel(parse_kernel_spec(names[i]));
  const std::vector<const HeadQuantity*> quantities = {&head_quantity("entropy"), &head_quantity("kl"),
                                                       &head_quantity("monotonicity"),
                                                       &head_quantity("change")};
  const auto read = read_heads(quantities, padded, kernels);
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t tokens = 4 + 2 * b;
    AttentionInput alone;
    alone.q = padded.q.slice(0, b, b + 1).slice(2, 0, tokens);
    alone.k = padded.k.slice(0, b, b + 1).slice(2, 0, tokens);
    alone.v = padded.v.slice(0, b, b + 1).slice(2, 0, tokens);
    for (std::size_t i = 0; i < names.size(); ++i) {
      SCOPED_TRACE(names[i] + ", sequence " + std::to_string(b));
      const Expected expected = expected_of(alone, names[i]);
      const auto mean = [&](std::size_t quantity) { return read[i].values[quantity].values[b].mean(0); };
      EXPECT_NEAR(mean(0).item<double>(), expected.entropy, 1e-5);
      EXPECT_NEAR(mean(1).item<double>(), expected.kl, 1e-5);
      EXPECT_NEAR(mean(2).item<double>(), expected.spearman, 1e-6);
      EXPECT_NEAR(mean(3)[0].item<double>(), expected.ratio, 1e-5);
      EXPECT_NEAR(mean(3)[1].item<double>(), expected.cosine, 1e-5);
      EXPECT_NEAR(mean(3)[2].item<double>(), expected.error, 1e-5);
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
  const Expected expected = expected_of(input, "relu");
  EXPECT_NEAR(read[0].values.item<double>(), expected.entropy, 1e-5);
  EXPECT_NEAR(read[1].values.item<double>(), expected.kl, 1e-5);
  EXPECT_NEAR(read[1].clamped_share, expected.clamped, 1e-9);
  EXPECT_NEAR(read[2].values.item<double>(), expected.spearman, 1e-6);
}

// Later tokens have no weight in either distribution: no floor raises them.
TEST(HeadReader, OnlyVisibleKeysAreClamped) {
  constexpr std::int64_t tokens = 2900; // two tiles, of other shares
  AttentionInput input;
  input.q = at::randn({1, 1, tokens, 4});
  input.k = at::randn({1, 1, tokens, 4});
  input.v = at::randn({1, 1, tokens, 4});
  input.causal = true;
  std::vector<LayerKernel> kernels(2);
  kernels[0].kernel = make_kernel(parse_kernel_spec("softmax"));
  kernels[1].kernel = make_kernel(parse_kernel_spec("relu"));
  const std::vector<const HeadQuantity*> quantities = {&head_quantity("kl")};
  const auto read = read_heads(quantities, input, kernels);
  EXPECT_EQ(read[0].values[0].clamped_share, 0);
  const at::Tensor all = kernels[1].kernel->weights(input, {});
  const auto weights = all.accessor<float, 4>()[0][0];
  double clamped = 0, visible = 0;
  for (std::int64_t row = 0; row < tokens; ++row)
    for (std::int64_t key = 0; key <= row; ++key) {
      ++visible;
      clamped += weights[row][key] < 1e-12F ? 1 : 0;
    }
  EXPECT_GT(clamped, 0);
  EXPECT_NEAR(read[1].values[0].clamped_share, clamped / visible, 1e-9);
}

} // namespace
} // namespace hydrascope
