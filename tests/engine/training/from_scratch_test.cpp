// Models from random weights: every preset at a small size, and that what is written opens and does what it
// learnt.
#include "engine/training/tasks/from_scratch.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/temporary.h"
#include "engine/measure/perplexity.h"
#include "engine/models/transformer/model.h"
#include "engine/run/model_store.h"
#include "engine/run/placement.h"
#include "engine/training/data/pathfinder.h"
#include "engine/training/data/sampling.h"
#include "engine/training/tasks/evaluate.h"
#include "engine/training/tasks/new_model.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;
using testing::ToyFolder;

ScratchRequest small(const ToyFolder& folder, const char* preset, const char* kernel = "softmax") {
  ScratchRequest request = scratch_request(scratch_preset(preset));
  request.schedule.kernel = kernel;
  request.layers = 2;
  request.heads = 2;
  request.width = 16;
  request.intermediate = 32;
  request.settings.batch = 8;
  request.settings.epochs = 2;
  request.settings.learning_rate = 3e-3;
  request.settings.execution.dtype = "float32";
  request.settings.execution.threads = 1;
  request.settings.output = folder / "model";
  return request;
}

TEST(FromScratch, PresetsAreTheBenchmarks) {
  const ScratchRequest gpt2 = scratch_request(scratch_preset("gpt2-wt103"));
  EXPECT_EQ(gpt2.layers, 12);
  EXPECT_EQ(gpt2.width, 768);
  EXPECT_EQ(gpt2.tokens, 1024);
  EXPECT_EQ(gpt2.settings.learning_rate, 6e-4);
  const ScratchRequest listops = scratch_request(scratch_preset("lra-listops"));
  EXPECT_EQ(listops.tokens, 2000);
  EXPECT_EQ(listops.sequences.training, 96'000);
  EXPECT_THAT([] { scratch_preset("lra"); }, ThrowsMessage<UsageError>(HasSubstr("lra-pathfinder")));
}

TEST(FromScratch, ALanguageModelIsLearntAndOpens) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "gpt2-wt103", "hedgehog");
  request.tokens = 32;
  request.settings.epochs = 4;
  request.settings.learning_rate = 1e-2;
  request.data = {testing::make_running_text(folder, "train.txt", 80)};
  request.validation = testing::make_running_text(folder, "held-out.txt", 20);
  const ScratchOutcome outcome = train_from_scratch(request);
  const HeldOut& before = outcome.training.before;
  EXPECT_NEAR(before.perplexity, 257, 30) << "random weights know nothing";
  EXPECT_LT(outcome.training.held_out.perplexity, 30);
  EXPECT_EQ(outcome.folder, request.settings.output);
  EXPECT_FALSE(std::filesystem::exists(folder / "model.hydrascope-part"));
  EXPECT_FALSE(std::filesystem::exists(folder / "model.checkpoint"));

  const auto model = load_model(outcome.folder);
  EXPECT_EQ(model->info().family, "gpt2");
  EXPECT_EQ(model->text_ids("ab \n\xc3\xa9").size(), 6U) << "a token a byte";
  std::int64_t parameters = 0;
  for (const std::string& name : model->parameter_names()) parameters += model->parameter(name).numel();
  EXPECT_EQ(outcome.parameters, parameters + 2 * (4 * 8 * 8 + 4 * 8)) << "and the maps";
  // With its kernel's maps, which lie in its folder, it predicts as it did.
  ASSERT_FALSE(outcome.adapter.empty());
  PerplexityRequest measure;
  measure.model_folder = outcome.folder;
  measure.schedule = ScheduleText{.kernel = "hedgehog"};
  measure.data = request.validation;
  measure.window = 32;
  const auto tokens =
      std::ssize(model->text_ids(std::string(std::filesystem::file_size(request.validation), 'a')));
  measure.limit = tokens / 32 * 32;
  const PerplexityOutcome measured = measure_perplexity(measure);
  EXPECT_THAT(measured.adapters, SizeIs(1));
  EXPECT_NEAR(measured.perplexity / outcome.training.held_out.perplexity, 1, 5e-3);
}

TEST(FromScratch, ALanguageModelHasTheTokenizerThatIsNamed) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "gpt2-wt103");
  request.tokenizer = testing::make_toy_model(folder, "written");
  request.tokens = 16;
  request.data = {testing::make_running_text(folder, "train.txt", 40)};
  request.settings.epochs = 1;
  const auto model = load_model(train_from_scratch(request).folder);
  EXPECT_EQ(model->info().vocabulary, 320);
  EXPECT_EQ(model->text_ids("the hedgehog"), load_model(request.tokenizer)->text_ids("the hedgehog"));
  EXPECT_TRUE(model->ends_text(1));
}

TEST(FromScratch, GoesOnBitForBit) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "gpt2-wt103", "hedgehog");
  request.tokens = 16;
  request.data = {testing::make_running_text(folder, "train.txt", 30)};
  const ScratchOutcome whole = train_from_scratch(request);
  request.settings.output = folder / "other";
  std::stop_source source;
  const auto stop_at_5 = [&](const TrainingProgress& progress) {
    if (progress.total_step == 5) source.request_stop();
  };
  EXPECT_TRUE(train_from_scratch(request, stop_at_5, source.get_token()).training.stopped);
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
  EXPECT_FALSE(std::filesystem::exists(folder / "other.hydrascope-part"));
  request.settings.resume = true;
  const ScratchOutcome resumed = train_from_scratch(request);
  EXPECT_EQ(resumed.training.curve, whole.training.curve);
  const auto one = load_model(whole.folder), other = load_model(resumed.folder);
  EXPECT_EQ(one->hash(), other->hash());
}

// Another process has the first name, as without locks no one has.
TEST(FromScratch, GoesOnUnderAnotherTemporaryName) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "gpt2-wt103");
  request.tokens = 16;
  request.data = {testing::make_running_text(folder, "train.txt", 30)};
  std::stop_source source;
  const auto stop_at_5 = [&](const TrainingProgress& progress) {
    if (progress.total_step == 5) source.request_stop();
  };
  EXPECT_TRUE(train_from_scratch(request, stop_at_5, source.get_token()).training.stopped);
  const TemporaryFolder taken(request.settings.output);
  request.settings.resume = true;
  EXPECT_EQ(train_from_scratch(request).folder, request.settings.output);
}

EvaluateOutcome evaluated(const ScratchRequest& request, const std::filesystem::path& data) {
  EvaluateRequest evaluation;
  evaluation.model_folder = request.settings.output;
  evaluation.schedule = request.schedule;
  evaluation.data = data;
  evaluation.columns = request.columns;
  evaluation.header = request.header;
  return evaluate(evaluation);
}

TEST(FromScratch, ListOpsIsTrainedAndTested) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "lra-listops", "elu");
  request.tokens = 24;
  request.sequences = {.training = 200, .validation = 40, .test = 40};
  const ScratchOutcome outcome = train_from_scratch(request);
  EXPECT_LT(outcome.training.final_loss, std::log(10.0));
  ASSERT_TRUE(outcome.test_accuracy.has_value());
  const auto model = load_model(outcome.folder);
  EXPECT_EQ(model->info().labels.size(), 10U);
  // A token a word, and the ends.
  EXPECT_EQ(model->prepare_text("[MAX 3 [SM 9 8 ] 2 ]").token_ids.size(1), 2 + 8);
}

TEST(FromScratch, PixelsAreTrained) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "lra-image");
  request.side = 8;
  request.data = {testing::make_toy_pictures(folder, 12)};
  request.settings.epochs = 2;
  const ScratchOutcome outcome = train_from_scratch(request);
  EXPECT_EQ(evaluated(request, request.data.front()).items, 36);
  const auto model = load_model(outcome.folder);
  EXPECT_EQ(model->info().patch_size, 1);
  // Colours do not reach it.
  Image picture{8, 8, {}};
  for (int i = 0; i < 64; ++i) picture.rgb.insert(picture.rgb.end(), {200, 10, 10});
  const at::Tensor pixels = model->prepare_image(picture).pixels;
  EXPECT_TRUE(pixels[0][0].equal(pixels[0][1]) && pixels[0][0].equal(pixels[0][2]));
  EXPECT_NEAR(pixels[0][0][0][0].item<double>(), (0.299 * 200 + 0.701 * 10) / 127.5 - 1, 0.01);
}

TEST(FromScratch, PatchesAreTrainedWithTheKernelsOfASchedule) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "deit-b");
  EXPECT_EQ(request.patch, 16);
  request.side = 16;
  request.patch = 4;
  request.schedule.replace = {"front:1=hedgehog"};
  request.data = {testing::make_toy_pictures(folder, 12)};
  request.settings.epochs = 20;
  request.settings.patience = 0;
  const ScratchOutcome outcome = train_from_scratch(request);
  EXPECT_EQ(outcome.folder / "adapters/kernels.safetensors", outcome.adapter);
  const AdapterInfo maps = read_adapter_info(outcome.adapter);
  ASSERT_THAT(maps.layers, SizeIs(2));
  EXPECT_EQ(maps.layers[0].kernel.name, "hedgehog");
  EXPECT_EQ(maps.layers[1].kernel.name, "softmax");
  const auto model = load_model(outcome.folder);
  EXPECT_EQ(model->info().patch_size, 4);
  EXPECT_GT(evaluated(request, request.data.front()).top1, 0.6) << "a third by chance";
  const auto store = make_model_store();
  const auto adapters_with = [&](const std::vector<std::string>& replace) {
    const Schedule schedule = parse_schedule(ScheduleText{.replace = replace}, 2);
    return store->apply(outcome.folder, {}, schedule, {}).adapters;
  };
  EXPECT_THAT(adapters_with(request.schedule.replace), SizeIs(1));
  EXPECT_THAT(adapters_with({"back:1=hedgehog"}), SizeIs(0)) << "trained in another layer";
  request.settings.output = folder / "other";
  request.schedule.replace = {"front:3=hedgehog"};
  EXPECT_THAT([&] { train_from_scratch(request); },
              ThrowsMessage<UsageError>(HasSubstr("3 layers cannot be replaced")));
  request.schedule.replace = {};
  request.patch = 3;
  EXPECT_THAT([&] { train_from_scratch(request); }, ThrowsMessage<UsageError>(HasSubstr("--patch-size")));
}

std::filesystem::path make_table(const ToyFolder& folder) {
  std::ofstream table(folder / "table.tsv");
  for (std::uint64_t i = 0; i < 40; ++i) {
    table << (i % 2 == 0 ? "good" : "bad") << "\tabc " << training::mix({i}) % 1000 << "\t"
          << (i % 2 == 0 ? "yes \xc3\xa9" : "no, no") << "\n";
  }
  return folder / "table.tsv";
}

TEST(FromScratch, BytesAreTrained) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "lra-text");
  request.tokens = 16;
  request.data = {make_table(folder)};
  request.columns = {.text = 3, .label = 1};
  request.settings.epochs = 12;
  EXPECT_GE(train_from_scratch(request).training.held_out.accuracy, 0.9);
  EXPECT_GE(evaluated(request, request.data.front()).top1, 0.9);
  const ModelInput input = load_model(request.settings.output)->prepare_text("yes \xc3\xa9");
  EXPECT_EQ(input.token_ids.size(1), 2 + 6);
  EXPECT_EQ(input.tokens.front().text, "[CLS]");
  EXPECT_EQ(input.tokens[1].word, 0);
  EXPECT_EQ(input.tokens[5].word, input.tokens[6].word) << "the two bytes of one letter";
  EXPECT_NE(input.tokens[5].word, input.tokens[1].word);
}

TEST(FromScratch, PairsOfTextsAreTrained) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "lra-retrieval");
  request.tokens = 12;
  request.data = {make_table(folder)};
  request.columns = {.text = 2, .pair = 3, .label = 1};
  request.settings.epochs = 12;
  EXPECT_GE(train_from_scratch(request).training.held_out.accuracy, 0.9);
  const ModelInput input = load_model(request.settings.output)->prepare_text("ab", "cde");
  EXPECT_EQ(input.token_ids.size(1), 3 + 5);
  EXPECT_EQ(input.token_types.sum().item<std::int64_t>(), 4);
  request.columns.pair = 0;
  request.settings.output = folder / "other";
  EXPECT_THROW(train_from_scratch(request), UsageError);
}

TEST(FromScratch, PathfinderIsTrainedAndTested) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "lra-pathfinder");
  request.layers = 1;
  request.sequences = {.training = 16, .validation = 4, .test = 4};
  request.settings.epochs = 1;
  const ScratchOutcome outcome = train_from_scratch(request);
  ASSERT_TRUE(outcome.test_accuracy.has_value());
  EXPECT_EQ(load_model(outcome.folder)->info().labels, (std::vector<std::string>{"apart", "connected"}));
}

// Its pictures follow from the seed: they may be made again, at another time.
TEST(FromScratch, PathfinderGoesOnWithoutTheCache) {
  const ToyFolder folder;
  ScratchRequest request = small(folder, "lra-pathfinder");
  request.layers = 1;
  request.sequences = {.training = 16, .validation = 4, .test = 4};
  request.settings.epochs = 1;
  std::stop_source source;
  const auto stop_at_1 = [&](const TrainingProgress& progress) {
    if (progress.total_step == 1) source.request_stop();
  };
  EXPECT_TRUE(train_from_scratch(request, stop_at_1, source.get_token()).training.stopped);
  std::filesystem::remove_all(folder / "cache");
  request.settings.resume = true;
  EXPECT_EQ(train_from_scratch(request).folder, request.settings.output);
}

TEST(FromScratch, RefusesWhatCannotBe) {
  const ToyFolder folder;
  const auto refused = [&](const char* part, const auto& change) {
    ScratchRequest request = small(folder, "gpt2-wt103");
    request.tokens = 16;
    request.data = {testing::make_running_text(folder, "train.txt", 20)};
    change(request);
    EXPECT_THAT([&] { train_from_scratch(request); }, ThrowsMessage<Error>(HasSubstr(part)));
    EXPECT_FALSE(std::filesystem::exists(folder / "model.hydrascope-part"));
  };
  refused("--data", [](ScratchRequest& request) { request.data.clear(); });
  refused("--heads", [](ScratchRequest& request) { request.heads = 3; });
  refused("--chunk", [](ScratchRequest& request) { request.tokens = 2; });
  refused("--sequences", [](ScratchRequest& request) { request.sequences.test = most_sequences + 1; });
  refused("exists already", [&](ScratchRequest& request) { request.settings.output = folder.path(); });
  refused("nowhere", [&](ScratchRequest& request) { request.data = {folder / "nowhere.txt"}; });
}

} // namespace
} // namespace hydrascope

namespace hydrascope::training {
namespace {

// Evaluates the tokens of an expression; `at` moves behind it.
int value_of_tokens(const std::vector<std::string>& tokens, std::size_t& at) {
  const std::string& token = tokens.at(at++);
  if (token[0] != '[') return std::stoi(token);
  std::vector<int> values;
  while (tokens.at(at) != "]") values.push_back(value_of_tokens(tokens, at));
  ++at;
  if (token == "[MIN") return *std::ranges::min_element(values);
  if (token == "[MAX") return *std::ranges::max_element(values);
  if (token == "[SM") {
    int sum = 0;
    for (const int value : values) sum += value;
    return sum % 10;
  }
  EXPECT_EQ(token, "[MED");
  std::ranges::sort(values);
  const double median = values.size() % 2 == 1
                            ? values[values.size() / 2]
                            : (values[values.size() / 2 - 1] + values[values.size() / 2]) / 2.0;
  return static_cast<int>(median);
}

TEST(ListOps, ExpressionsHaveTheirValueAndLength) {
  const ListOpsShape shape{.depth = 5, .arguments = 6, .least = 10, .most = 60};
  std::map<std::string, int> operations;
  std::set<int> results;
  std::size_t deepest = 0;
  for (std::uint64_t key = 0; key < 200; ++key) {
    const ListOpsExpression expression = listops_expression(shape, key);
    std::istringstream words(expression.text);
    std::vector<std::string> tokens;
    std::size_t depth = 0;
    for (std::string word; words >> word;) {
      depth += word[0] == '[' ? 1 : 0;
      deepest = std::max(deepest, depth);
      depth -= word == "]" ? 1 : 0;
      if (word[0] == '[') ++operations[word];
      tokens.push_back(std::move(word));
    }
    EXPECT_GT(tokens.size(), 10U);
    EXPECT_LT(tokens.size(), 60U);
    std::size_t at = 0;
    EXPECT_EQ(value_of_tokens(tokens, at), expression.value) << expression.text;
    EXPECT_EQ(at, tokens.size());
    results.insert(expression.value);
    EXPECT_EQ(listops_expression(shape, key).text, expression.text);
  }
  EXPECT_EQ(operations.size(), 4U);
  EXPECT_EQ(results.size(), 10U);
  EXPECT_EQ(deepest, 4U) << "at the greatest depth there are digits";
  EXPECT_THROW(listops_expression({.least = 10, .most = 11}, 1), UsageError);
}

TEST(ListOps, FilesShareNoExpression) {
  const hydrascope::testing::ToyFolder folder;
  const ListOpsFiles files = listops_files({.least = 4, .most = 12}, {60, 20, 20}, 3);
  std::set<std::string> expressions;
  std::size_t lines = 0;
  for (const auto& file : {files.training, files.validation, files.test})
    for (const LabelledText& line : read_labelled_texts(file, {}, false, 0)) {
      expressions.insert(line.text);
      ++lines;
    }
  EXPECT_EQ(lines, 100U);
  EXPECT_EQ(expressions.size(), lines);
}

TEST(Pathfinder, PicturesAreBlackWithWhitePathsAndTwoDots) {
  for (const bool connected : {false, true}) {
    std::set<std::vector<std::uint8_t>> pictures;
    for (std::uint64_t key = 0; key < 10; ++key) {
      const Image picture = pathfinder_picture({}, connected, key);
      ASSERT_EQ(picture.rgb.size(), 3U * 32 * 32);
      const auto white = std::ranges::count_if(picture.rgb, [](const auto value) { return value > 127; });
      EXPECT_GT(white, 3 * 30);
      EXPECT_LT(white, 3 * 32 * 32 / 3);
      pictures.insert(picture.rgb);
      EXPECT_EQ(pathfinder_picture({}, connected, key).rgb, picture.rgb);
      EXPECT_NE(pathfinder_picture({}, !connected, key).rgb, picture.rgb);
    }
    EXPECT_EQ(pictures.size(), 10U);
  }
  EXPECT_THROW(pathfinder_picture({.side = 10}, true, 1), UsageError);
}

} // namespace
} // namespace hydrascope::training
