// Associative recall: its data, its model, and that it is learnt.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/kernel.h"
#include "engine/base/error.h"
#include "engine/models/transformer/encoder_layer.h"
#include "engine/training/tasks/recall.h"
#include "engine/training/tasks/recall_model.h"
#include "tests/engine/attention/inputs.h"
#include "tests/engine/training/toy.h"

namespace hydrascope::training {
namespace {

using hydrascope::testing::ToyFolder;
using ::testing::HasSubstr;
using testing_inputs::normal;

constexpr RecallTask paper = {};

TEST(RecallData, IsPairsUnderOneMapAndThenAKeyThatHasOccurred) {
  std::set<std::int64_t> used, last_keys, last_values;
  std::set<std::vector<std::int64_t>> maps;
  for (int index = 0; index < 300; ++index) {
    const RecallSequence sequence = recall_sequence(paper, 5, RecallPart::training, index);
    ASSERT_EQ(sequence.tokens.size(), 128U);
    std::map<std::int64_t, std::int64_t> map;
    std::vector<std::int64_t> recalled;
    for (std::size_t pair = 0; pair < 64; ++pair) {
      const std::int64_t key = sequence.tokens[2 * pair], value = sequence.tokens[2 * pair + 1];
      ASSERT_TRUE(key >= 0 && key < 20);
      ASSERT_TRUE(value >= 20 && value < 40);
      const bool occurred = !map.try_emplace(key, value).second;
      ASSERT_EQ(map.at(key), value) << "a key has one value within a sequence";
      if (occurred) recalled.push_back(static_cast<std::int64_t>(2 * pair + 1));
      EXPECT_TRUE(occurred || pair < 63) << "the last key has occurred";
    }
    EXPECT_EQ(sequence.recalled, recalled);
    EXPECT_EQ(sequence.recalled.back(), 127);
    used.insert(sequence.tokens.begin(), sequence.tokens.end());
    last_keys.insert(sequence.tokens[126]);
    last_values.insert(sequence.tokens[127]);
    std::vector<std::int64_t> values;
    for (const auto& [key, value] : map) values.push_back(value);
    maps.insert(values);
  }
  EXPECT_EQ(used.size(), 40U);
  EXPECT_EQ(last_keys.size(), 20U);
  EXPECT_EQ(last_values.size(), 20U);
  EXPECT_EQ(maps.size(), 300U) << "each sequence has a map of its own";
}

TEST(RecallData, KeysAndValuesAreAboutEquallyFrequent) {
  std::vector<int> counts(40);
  for (int index = 0; index < 500; ++index) {
    const RecallSequence sequence = recall_sequence(paper, 1, RecallPart::test, index);
    for (std::size_t i = 0; i < 126; ++i) ++counts[static_cast<std::size_t>(sequence.tokens[i])];
  }
  for (const int count : counts) EXPECT_NEAR(count, 500 * 63 / 20.0, 240); // values come in runs of about 3
}

TEST(RecallData, IsAFunctionOfSeedPartAndIndex) {
  const auto tokens = [](const std::uint64_t seed, const RecallPart part, const std::int64_t index) {
    return recall_sequence(paper, seed, part, index).tokens;
  };
  const auto one = tokens(1, RecallPart::training, 7);
  EXPECT_EQ(one, tokens(1, RecallPart::training, 7));
  EXPECT_NE(one, tokens(2, RecallPart::training, 7));
  EXPECT_NE(one, tokens(1, RecallPart::test, 7));
  EXPECT_NE(one, tokens(1, RecallPart::validation, 7));
  EXPECT_NE(one, tokens(1, RecallPart::training, 8));
}

TEST(RecallPresets, AreThePapers) {
  const RecallRequest paper_request = recall_request(RecallPreset::paper);
  EXPECT_EQ(paper_request.task.training, 10'000);
  EXPECT_EQ(paper_request.task.test, 2'000);
  EXPECT_EQ(paper_request.settings.epochs, 100);
  EXPECT_EQ(paper_request.settings.patience, 10);
  EXPECT_FALSE(paper_request.all_values);
  const RecallRequest small = recall_request(RecallPreset::small);
  EXPECT_EQ(small.task.keys + small.task.values, 20);
  EXPECT_EQ(small.task.tokens, 64);
  EXPECT_EQ(small.model.layers, 2);
  EXPECT_EQ(small.model.heads, 2);
  EXPECT_EQ(small.model.head_width, 32);
  EXPECT_TRUE(small.all_values);
}

TEST(RecallRotary, TurnsPairsOfFeaturesByTheTokensAngle) {
  const at::Tensor x = normal({1, 1, 3, 4}, 1);
  const at::Tensor turned = Rotary({}, 3, 4, at::kCPU)(x);
  const auto value = [](const at::Tensor& of, const int token, const int feature) {
    return of[0][0][token][feature].item<double>();
  };
  for (int token = 0; token < 3; ++token)
    for (int pair = 0; pair < 2; ++pair) {
      const double angle = token * std::pow(10'000.0, -pair / 2.0);
      const double first = value(x, token, pair), second = value(x, token, pair + 2);
      EXPECT_NEAR(value(turned, token, pair), first * std::cos(angle) - second * std::sin(angle), 1e-6);
      EXPECT_NEAR(value(turned, token, pair + 2), first * std::sin(angle) + second * std::cos(angle), 1e-6);
    }
}

TEST(RecallRotary, ProductsDependOnTheDistanceOnly) {
  const at::Tensor q = normal({1, 1, 1, 8}, 2).expand({1, 1, 40, 8}), k = normal({1, 1, 1, 8}, 3);
  const Rotary rotary({}, 40, 8, at::kCPU);
  const at::Tensor products = at::matmul(rotary(q), rotary(k.expand({1, 1, 40, 8})).transpose(2, 3))[0][0];
  for (const int distance : {0, 1, 7, 30})
    for (int token = distance; token < 40; ++token)
      EXPECT_NEAR(products[token][token - distance].item<double>(), products[distance][0].item<double>(),
                  1e-5);
  EXPECT_GT((products[7][0] - products[0][0]).abs().item<double>(), 1e-3);
}

RecallRequest tiny(const std::string& kernel) {
  RecallRequest request = recall_request(RecallPreset::small);
  request.kernel = parse_kernel_spec(kernel);
  request.task = {.keys = 2, .values = 2, .tokens = 10, .training = 256, .validation = 64, .test = 128};
  request.model = {.layers = 2, .heads = 2, .head_width = 8};
  request.settings.epochs = 2;
  request.settings.batch = 32;
  request.settings.execution.threads = 1;
  request.settings.execution.seed = 3;
  request.warmup = 0;
  return request;
}

class RecallOfKernel : public ::testing::TestWithParam<std::string> {};

TEST_P(RecallOfKernel, LaterTokensChangeNothingEarlier) {
  const RecallRequest request = tiny(GetParam());
  const RecallModel model(request, 3);
  const at::NoGradGuard no_gradients;
  const std::int64_t read = request.task.tokens - 1;
  const at::Tensor tokens = at::tensor({0, 2, 1, 3, 0, 2, 1, 3, 0}, at::kLong).view({1, read});
  const at::Tensor positions = at::arange(read, at::kLong);
  const at::Tensor before = model.logits(tokens, positions);
  for (std::int64_t changed = 1; changed < read; ++changed) {
    at::Tensor other = tokens.clone();
    other[0][changed] = 3 - other[0][changed];
    const at::Tensor difference = (model.logits(other, positions) - before).abs().amax(1);
    EXPECT_LT(difference.slice(0, 0, changed).max().item<double>(), 1e-5) << "token " << changed;
    EXPECT_GT(difference[changed].item<double>(), 1e-4);
  }
}

TEST_P(RecallOfKernel, LearnsEveryParameterItHas) {
  const RecallRequest request = tiny(GetParam());
  const RecallModel model(request, 3);
  const at::Tensor tokens = at::tensor({0, 2, 1, 3, 0, 2, 1, 3, 0}, at::kLong).view({1, 9});
  model.logits(tokens, at::arange(9, at::kLong)).square().sum().backward();
  for (const auto& [name, value] : model.leaves()) {
    ASSERT_TRUE(value.grad().defined()) << name;
    EXPECT_TRUE(value.grad().isfinite().all().item<bool>()) << name;
  }
}

std::vector<std::string> causal_kernels() {
  std::vector<std::string> names;
  for (const RegistryEntry& entry : registry()) {
    const auto kernel = entry.make({.name = entry.info.name});
    if (kernel->supports({.heads = 2, .tokens = 9, .head_width = 8, .has_layer_input = true, .causal = true})
            .ok)
      // Of a window as long as the sequence nothing would leave.
      names.push_back(entry.info.name + (entry.info.parameter("w") != nullptr ? ":w=3" : ""));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Causal, RecallOfKernel, ::testing::ValuesIn(causal_kernels()),
                         [](const auto& kernel) {
                           std::string name = kernel.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

TEST(RecallModel, KernelsThatDoNotTakeTheSequenceAreAUsageError) {
  try {
    const RecallModel model(tiny("cosformer:m=3"), 3);
    FAIL() << "was not refused";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("more than m=3"));
  }
}

TEST(RecallModel, RandomFeaturesAreNotTrained) {
  const RecallModel performer(tiny("performer"), 3);
  for (const auto& [name, value] : performer.leaves()) EXPECT_EQ(name.find("omega"), std::string::npos);
  EXPECT_TRUE(RecallModel(tiny("hedgehog"), 3).leaves().contains("layer.1.kernel.key_map.weight"));
}

} // namespace
} // namespace hydrascope::training

namespace hydrascope {
namespace {

using hydrascope::training::tiny;
using ::testing::HasSubstr;

TEST(Recall, IsLearnt) {
  for (const char* kernel : {"softmax", "hedgehog"}) {
    RecallRequest request = tiny(kernel);
    request.settings.epochs = 40;
    request.settings.learning_rate = 5e-3;
    request.task.training = 512;
    request.all_values = true;
    const RecallOutcome outcome = recall(request);
    EXPECT_GT(outcome.accuracy, 0.95) << kernel;
    EXPECT_LT(outcome.loss, outcome.training.before.loss / 3);
    ASSERT_TRUE(outcome.entropy.has_value());
    EXPECT_GT(*outcome.entropy, 0);
    double uniform = 0; // the entropy of weights that look at all tokens before alike
    for (int row = 1; row <= 9; ++row) uniform += std::log(row) / 9;
    EXPECT_LT(*outcome.entropy, uniform);
    EXPECT_EQ(outcome.layer_entropies.size(), 2U);
    EXPECT_GT(outcome.parameters, 1000);
    EXPECT_LE(outcome.epochs, 40);
    EXPECT_EQ(outcome.training.curve.size(), static_cast<std::size_t>(outcome.training.steps));
  }
}

TEST(Recall, SignedWeightsHaveNoEntropy) {
  const RecallOutcome outcome = recall(tiny("hydra-cosine"));
  EXPECT_FALSE(outcome.entropy.has_value());
  EXPECT_TRUE(outcome.layer_entropies.empty());
  EXPECT_GT(outcome.accuracy, 0);
}

TEST(Recall, GoesOnBitForBit) {
  const RecallOutcome whole = recall(tiny("hedgehog"));
  const testing::ToyFolder folder;
  RecallRequest request = tiny("hedgehog");
  request.settings.output = folder / "recall.json.hedgehog";
  std::stop_source source;
  const auto stop_at_11 = [&](const TrainingProgress& progress) {
    if (progress.total_step == 11) source.request_stop();
  };
  const RecallOutcome first = recall(request, stop_at_11, source.get_token());
  EXPECT_TRUE(first.training.stopped);
  EXPECT_EQ(first.training.steps, 11);
  const std::filesystem::path checkpoint = folder / "recall.json.hedgehog.checkpoint";
  ASSERT_TRUE(std::filesystem::exists(checkpoint));
  request.settings.resume = true;
  const RecallOutcome resumed = recall(request);
  EXPECT_TRUE(std::filesystem::exists(checkpoint)) << "until the caller has written the result";
  EXPECT_EQ(resumed.training.curve, whole.training.curve);
  EXPECT_EQ(resumed.loss, whole.loss);
  EXPECT_EQ(resumed.accuracy, whole.accuracy);
  EXPECT_EQ(resumed.entropy, whole.entropy);
}

// It would be of some of the sequences, counted as all.
TEST(Recall, AStopDuringTheTestIsNoResult) {
  const RecallRequest request = tiny("elu");
  std::stop_source source;
  const auto stop_after_training = [&](const TrainingProgress& progress) {
    if (progress.phase == "validate" && progress.total_step == 16) source.request_stop();
  };
  const RecallOutcome outcome = recall(request, stop_after_training, source.get_token());
  EXPECT_EQ(outcome.training.steps, 16);
  EXPECT_TRUE(outcome.training.stopped);
}

TEST(Recall, ABatchLargerThanTheDataIsOneStep) {
  RecallRequest request = tiny("elu");
  request.settings.batch = std::numeric_limits<int>::max();
  request.settings.epochs = 2;
  std::vector<double> items; // of a step, by the rate and the time that the other one is to take
  const RecallOutcome outcome = recall(request, [&](const TrainingProgress& progress) {
    if (progress.phase == "train" && progress.total_step == 1)
      items.push_back(progress.items_per_second * progress.seconds_left);
  });
  EXPECT_EQ(outcome.training.steps, 2);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_NEAR(items.front(), 256, 1e-6);
}

TEST(Recall, MoreSequencesThanFitAreRefused) {
  for (int RecallTask::*const count : {&RecallTask::training, &RecallTask::validation, &RecallTask::test}) {
    RecallRequest request = tiny("elu");
    request.task.*count = most_sequences + 1;
    EXPECT_THAT([&] { recall(request); }, ::testing::ThrowsMessage<UsageError>(
                                              HasSubstr("--sequences: must lie between 1 and 1000000")));
  }
}

TEST(Recall, RefusesWhatCannotBe) {
  const auto refused = [](const auto& change) {
    RecallRequest request = tiny("softmax");
    change(request);
    EXPECT_THROW(recall(request), UsageError);
  };
  refused([](RecallRequest& request) { request.task.tokens = 9; });
  refused([](RecallRequest& request) { request.task.keys = 0; });
  refused([](RecallRequest& request) { request.task.test = 0; });
  refused([](RecallRequest& request) { request.model.head_width = 7; });
  refused([](RecallRequest& request) { request.weight_decay = -1; });
  refused([](RecallRequest& request) { request.settings.epochs = 0; });
}

} // namespace
} // namespace hydrascope
