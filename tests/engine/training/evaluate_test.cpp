#include "engine/training/tasks/evaluate.h"

#include <cmath>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/measure/pointing.h"
#include "engine/models/transformer/model.h"
#include "engine/run/placement.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/runner.h"
#include "engine/training/data/labelled_files.h"
#include "tests/engine/run/read_result.h"
#include "tests/engine/training/toy.h"
#include "tests/support/devices.h"

namespace hydrascope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing::ToyFolder;

// ---- Texts ------------------------------------------------------------------------------------------------

// Texts of several lengths with what the model, run by itself, predicts for each.
struct ToyTexts {
  std::vector<std::string> texts, predicted;
};

ToyTexts toy_texts(const std::filesystem::path& model, const std::string& pair) {
  ToyTexts result;
  Runner runner;
  for (int i = 0; i < 24; ++i) {
    std::string text;
    for (int word = 0; word <= i % 7; ++word)
      text += fmt::format("{} ", static_cast<char>('a' + (5 * i + 11 * word) % 26));
    RunRequest request;
    request.model_folder = model;
    request.adapters.automatic = false;
    request.input = TextInput{text, pair.empty() ? std::nullopt : std::optional(pair)};
    result.texts.push_back(text);
    result.predicted.push_back(runner.run(request)->predictions.front().label);
  }
  return result;
}

EvaluateRequest text_request(const std::filesystem::path& model, const std::filesystem::path& data) {
  EvaluateRequest request;
  request.model_folder = model;
  request.adapters.automatic = false;
  request.data = data;
  request.batch = 5;
  return request;
}

TEST(Evaluate, TextsInPaddedBatchesAreJudgedAsByThemselves) {
  const ToyFolder folder;
  const auto model = testing::make_toy_model(folder, "bert");
  const ToyTexts toy = toy_texts(model, "");
  ASSERT_GT(std::set(toy.predicted.begin(), toy.predicted.end()).size(), 1U);
  std::ofstream table(folder / "table.tsv");
  for (std::size_t i = 0; i < toy.texts.size(); ++i)
    table << toy.texts[i] << '\t' << toy.predicted[i] << '\n';
  table.close();
  EvaluateRequest request = text_request(model, folder / "table.tsv");
  const EvaluateOutcome all = evaluate(request);
  EXPECT_EQ(all.items, 24);
  EXPECT_EQ(all.top1, 1.0);
  EXPECT_EQ(all.top5, 1.0);
  EXPECT_EQ(all.matthews, 1.0);
  EXPECT_EQ(all.f1, 1.0);
  EXPECT_EQ(all.f1_of, "macro"); // three classes
  EXPECT_FALSE(all.pointing);
  const EvaluateOutcome device = evaluate_in({test::accelerator(), c10::kFloat}, request);
  EXPECT_EQ(device.items, 24);
  EXPECT_EQ(device.top1, 1.0);
  request.limit = 7;
  EXPECT_EQ(evaluate(request).items, 7);
}

TEST(Evaluate, PairsAndLabelsByTheirNumber) {
  const ToyFolder folder;
  const auto model = testing::make_toy_model(folder, "bert");
  const ToyTexts toy = toy_texts(model, "q r s t");
  const std::vector<std::string> labels = {"no", "maybe", "yes"};
  std::ofstream table(folder / "table.tsv");
  table << "label\tfirst\tsecond\n";
  for (std::size_t i = 0; i < toy.texts.size(); ++i) {
    const auto predicted = std::ranges::find(labels, toy.predicted[i]) - labels.begin();
    // Every fourth label is another one than what is predicted.
    table << (i % 4 == 0 ? (predicted + 1) % 3 : predicted) << '\t' << toy.texts[i] << "\tq r s t\n";
  }
  table.close();
  EvaluateRequest request = text_request(model, folder / "table.tsv");
  request.columns = {2, 3, 1};
  request.header = true;
  const EvaluateOutcome outcome = evaluate(request);
  EXPECT_EQ(outcome.items, 24);
  EXPECT_DOUBLE_EQ(outcome.top1, 0.75);
  EXPECT_LT(*outcome.matthews, 1.0);
}

TEST(Evaluate, UnknownLabelsAreAllListed) {
  const ToyFolder folder;
  const auto model = testing::make_toy_model(folder, "bert");
  std::ofstream(folder / "table.tsv") << "a\tyes\nb\tperhaps\nc\t3\nd\tperhaps\n";
  const EvaluateRequest request = text_request(model, folder / "table.tsv");
  EXPECT_THAT([&] { evaluate(request); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("3, perhaps"), HasSubstr("no, maybe, yes"))));
}

// ---- Boxes ------------------------------------------------------------------------------------------------

TEST(Boxes, ColumnsInAnyOrder) {
  const ToyFolder folder;
  std::ofstream(folder / "boxes.tsv")
      << "class\timage\tscore\tx1\ty1\tx0\ty0\r\nred\ta/0.ppm\t1\t9\t8\t1.5\t2\r\n";
  const auto boxes = training::read_boxes(folder / "boxes.tsv");
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_EQ(boxes[0].image, "a/0.ppm");
  EXPECT_EQ(boxes[0].class_name, "red");
  EXPECT_EQ(boxes[0].box, (PixelBox{1.5, 2, 9, 8}));
  EXPECT_TRUE(training::names_picture("a/0.ppm", "x/a/0.ppm"));
  EXPECT_TRUE(training::names_picture("0.ppm", "x/a/0.ppm"));
  EXPECT_FALSE(training::names_picture("0.ppm", "x/a/10.ppm"));
  EXPECT_FALSE(training::names_picture("b/0.ppm", "x/a/0.ppm"));
}

TEST(Boxes, ErrorsNameLineAndReason) {
  const ToyFolder folder;
  const auto message = [&](const std::string& text) {
    std::ofstream(folder / "boxes.tsv") << text;
    return [file = folder / "boxes.tsv"] { training::read_boxes(file); };
  };
  const std::string header = "image\tclass\tx0\ty0\tx1\ty1\n";
  EXPECT_THAT(message("image\tclass\tx0\ty0\tx1\na\tb\t1\t1\t1\n"),
              ThrowsMessage<Error>(AllOf(HasSubstr("boxes.tsv"), HasSubstr("no column y1"))));
  EXPECT_THAT(message(header), ThrowsMessage<Error>(HasSubstr("holds no box")));
  EXPECT_THAT(message(header + "a\tb\t0\t0\t4\n"), ThrowsMessage<Error>(HasSubstr("line 2 has no y1")));
  EXPECT_THAT(message(header + "a\tb\t0\t0\t4\t4\na\tb\t0\t0x\t4\t4\n"),
              ThrowsMessage<Error>(HasSubstr("line 3: y0 is \"0x\"")));
  EXPECT_THAT(message(header + "a\tb\t5\t0\t4\t4\n"),
              ThrowsMessage<Error>(HasSubstr("line 2: the box ends")));
}

// ---- The pointing game and curves -------------------------------------------------------------------------

class EvaluateMaps : public ::testing::Test {
protected:
  EvaluateMaps() {
    request_.model_folder = testing::make_toy_model(folder_, "dinov2");
    request_.adapters.automatic = false;
    request_.data = folder_ / "pictures";
    request_.boxes = folder_ / "boxes.tsv";
    testing::make_toy_pictures(folder_, 3);
    std::filesystem::rename(folder_ / "pictures/red", folder_ / "pictures/cat");
    std::filesystem::rename(folder_ / "pictures/green", folder_ / "pictures/dog");
    std::filesystem::rename(folder_ / "pictures/blue", folder_ / "pictures/fish");
  }

  template <typename BoxOf>
  void write_boxes(const BoxOf& box_of) const {
    std::ofstream table(request_.boxes);
    table << "image\tclass\tx0\ty0\tx1\ty1\n";
    for (const std::string name : {"cat", "dog", "fish"})
      for (int i = 0; i < 3; ++i) {
        const PixelBox box = box_of(name, i);
        table << fmt::format("{}/{}.ppm\t{}\t{}\t{}\t{}\t{}\n", name, i, name, box.x0, box.y0, box.x1,
                             box.y1);
      }
  }

  static double share(const EvaluateOutcome& outcome, const std::string& name) {
    for (const auto& method : outcome.pointing->methods)
      if (method.name == name) return method.share;
    throw std::runtime_error("no method " + name);
  }

  static bool has(const EvaluateOutcome& outcome, const std::string& name) {
    return std::ranges::any_of(outcome.pointing->methods,
                               [&](const auto& method) { return method.name == name; });
  }

  ToyFolder folder_;
  EvaluateRequest request_;
};

TEST_F(EvaluateMaps, BoxesRoundEverythingAndRoundNothing) {
  write_boxes([](const std::string&, int) { return PixelBox{0, 0, 29, 29}; });
  const EvaluateOutcome all = evaluate(request_);
  EXPECT_EQ(all.pointing->items, 9);
  const auto empty = static_cast<double>(all.pointing->empty_focus_maps);
  EXPECT_DOUBLE_EQ(share(all, "focus"), (9 - empty) / 9);
  for (const char* name : {"rollout", "attention", "centre", "chance"}) EXPECT_EQ(share(all, name), 1.0);
  // The rim that the crop takes away holds no patch's centre.
  write_boxes([](const std::string&, int) { return PixelBox{0, 0, 29, 1}; });
  const EvaluateOutcome none = evaluate(request_);
  for (const auto& method : none.pointing->methods) EXPECT_EQ(method.share, 0.0) << method.name;
  // The predictions are those of an evaluation without boxes.
  request_.boxes.clear();
  const EvaluateOutcome plain = evaluate(request_);
  EXPECT_EQ(plain.items, 9);
  EXPECT_EQ(plain.top1, none.top1);
  EXPECT_FALSE(plain.pointing);
  EXPECT_FALSE(plain.matthews);
}

TEST_F(EvaluateMaps, EachMethodIsJudgedByItsOwnMaximum) {
  // A box of one patch for each picture: where the attention of the last layer, read by hand, is largest.
  Runner runner;
  std::vector<int> used(4);
  write_boxes([&](const std::string& name, const int i) {
    RunRequest run;
    run.model_folder = request_.model_folder;
    run.adapters.automatic = false;
    const auto file = request_.data / name / fmt::format("{}.ppm", i);
    run.input = ImageInput{std::make_shared<const Image>(load_image(file)), "", {}};
    const WeightsKey key{.layer = 1, .rows = {0}};
    run.quantities = {key};
    const auto result = runner.run(run);
    const Array& weights = test::read(*result, key).weights;
    std::vector<double> sums(4);
    for (std::int64_t head = 0; head < 2; ++head)
      for (std::size_t patch = 0; patch < 4; ++patch)
        sums[patch] += static_cast<double>(weights.slice(head)[patch + 1]);
    const auto best = std::ranges::max_element(sums) - sums.begin();
    ++used[static_cast<std::size_t>(best)];
    const double x = best % 2 == 0 ? 0 : 15, y = best / 2 == 0 ? 0 : 15;
    return PixelBox{x, y, x + 14, y + 14};
  });
  EXPECT_LT(*std::ranges::max_element(used), 9); // not the same patch for all of them
  const EvaluateOutcome outcome = evaluate(request_);
  EXPECT_EQ(share(outcome, "attention"), 1.0);
  EXPECT_EQ(share(outcome, "chance"), 0.25);
  EXPECT_LT(share(outcome, "focus"), 1.0);
}

TEST_F(EvaluateMaps, IsTheSameOnADevice) {
  write_boxes([](const std::string&, int i) { return PixelBox{0, 0, 9.0 + 5 * i, 14}; });
  const Placement placement{test::accelerator(), c10::kFloat};
  const EvaluateOutcome host = evaluate(request_), device = evaluate_in(placement, request_);
  ASSERT_TRUE(device.pointing);
  EXPECT_EQ(device.top1, host.top1);
  for (const auto& method : host.pointing->methods)
    EXPECT_EQ(share(device, method.name), method.share) << method.name;
  request_.boxes.clear();
  EXPECT_EQ(evaluate_in(placement, request_).top1, host.top1);
}

// Against the deletion curves that a run of each picture gives for its focus map.
TEST_F(EvaluateMaps, CurvesAreThoseOfEachRunAveraged) {
  request_.boxes.clear();
  request_.curve_steps = 3;
  request_.batch = 2;
  const EvaluateOutcome outcome = evaluate(request_);
  ASSERT_TRUE(outcome.curves);
  EXPECT_FALSE(outcome.pointing);
  EXPECT_EQ(outcome.curves->items, 9);
  std::vector<std::string> names;
  for (const auto& method : outcome.curves->methods) names.push_back(method.name);
  EXPECT_EQ(names, (std::vector<std::string>{"focus", "rollout", "attention", "centre", "random"}));
  std::vector<double> deletion, insertion, random, difference;
  Runner runner;
  const std::vector<std::string> labels = load_model(request_.model_folder)->info().labels;
  for (const std::string name : {"cat", "dog", "fish"})
    for (int i = 0; i < 3; ++i) {
      RunRequest run;
      run.model_folder = request_.model_folder;
      run.adapters.automatic = false;
      const auto file = request_.data / name / fmt::format("{}.ppm", i);
      run.input = ImageInput{std::make_shared<const Image>(load_image(file)), "", {}};
      run.target.kind = Target::Kind::class_index;
      run.target.index = static_cast<int>(std::ranges::find(labels, name) - labels.begin());
      const DeletionKey key{.layer = 1, .steps = 3, .seed = deletion.size()};
      run.quantities = {key};
      const auto result = runner.run(run);
      const DeletionResult& own = test::read(*result, key);
      deletion.push_back(own.most_first.area);
      insertion.push_back(own.least_first.area);
      random.push_back(own.random.area);
      difference.push_back(own.most_first.area - own.random.area);
    }
  const auto expect_mean = [](const MeanWithError& found, const std::vector<double>& values) {
    double mean = 0, squares = 0;
    for (const double value : values) mean += value / 9;
    for (const double value : values) squares += (value - mean) * (value - mean);
    EXPECT_NEAR(found.mean, mean, 1e-6);
    EXPECT_NEAR(found.standard_error, std::sqrt(squares / 8 / 9), 1e-6);
    EXPECT_GT(found.standard_error, 0);
  };
  const auto& focus = outcome.curves->methods.front();
  expect_mean(focus.deletion, deletion);
  expect_mean(focus.insertion, insertion);
  ASSERT_EQ(outcome.curves->differences.size(), 10U);
  const auto& over_random = outcome.curves->differences[3];
  EXPECT_EQ(over_random.of + over_random.from, "focusrandom");
  expect_mean(over_random.deletion, difference);
  expect_mean(outcome.curves->methods.back().deletion, random);
  EXPECT_EQ(outcome.top1, evaluate_in({at::kCPU, c10::kFloat}, request_).top1);
}

// Against runs that hide the tokens in the order of the maps that they give.
TEST_F(EvaluateMaps, CurvesFollowEachMapsOwnOrder) {
  request_.boxes.clear();
  request_.curve_steps = 4; // a patch a step
  request_.limit = 1;
  const EvaluateOutcome outcome = evaluate(request_);
  Runner runner;
  RunRequest run;
  run.model_folder = request_.model_folder;
  run.adapters.automatic = false;
  run.input = ImageInput{std::make_shared<const Image>(load_image(request_.data / "cat/0.ppm")), "", {}};
  const WeightsKey attention{.layer = 1, .rows = {0}};
  run.quantities = {RolloutKey{}, attention};
  const auto whole = runner.run(run);
  const auto of_cat = [](const RunResult& result) {
    const auto found = std::ranges::find(result.predictions, "cat", &Prediction::label);
    return static_cast<double>(found->probability);
  };
  const auto probe = [&](std::vector<std::int64_t> hidden) {
    RunRequest without = run;
    without.hidden_tokens = std::move(hidden);
    return HiddenTarget{of_cat(*runner.run(without)), {}};
  };
  const auto expect_areas = [&](const std::string& name, const std::vector<float>& map) {
    const std::vector<std::int64_t> patches{1, 2, 3, 4};
    const HiddenTarget of_whole{of_cat(*whole), {}};
    const DeletionResult curves = deletion_curves({.steps = 4, .seed = 0}, map, patches, of_whole, probe);
    const auto found = std::ranges::find(outcome.curves->methods, name, &CurvesOutcome::Method::name);
    EXPECT_NEAR(found->deletion.mean, curves.most_first.area, 1e-6) << name;
    EXPECT_NEAR(found->insertion.mean, curves.least_first.area, 1e-6) << name;
    return curves.most_first.area;
  };
  const auto rollout = test::read(*whole, RolloutKey{}).weights.slice(0).first(5);
  std::vector<float> mean(5);
  for (std::int64_t head = 0; head < 2; ++head)
    for (std::size_t token = 0; token < 5; ++token)
      mean[token] += test::read(*whole, attention).weights.slice(head)[token] / 2;
  expect_areas("attention", mean);
  expect_areas("rollout", {rollout.begin(), rollout.end()});
}

TEST_F(EvaluateMaps, WhatDoesNotApplyIsLeftOutAndSaidSo) {
  write_boxes([](const std::string&, int) { return PixelBox{0, 0, 29, 29}; });
  request_.schedule = ScheduleText{.replace = {"back:1=hydra-cosine"}};
  const EvaluateOutcome outcome = evaluate(request_);
  EXPECT_FALSE(has(outcome, "attention"));
  EXPECT_TRUE(has(outcome, "focus"));
  EXPECT_THAT(outcome.notes, ::testing::Contains(HasSubstr("hydra-cosine in layer 1")));
  EXPECT_THAT(outcome.notes, ::testing::Contains("untrained: no adapter for hydra-cosine in 1 of 2 layers"));
}

TEST_F(EvaluateMaps, PicturesWithoutABoxOfTheirClassAreNotPlayed) {
  std::ofstream(request_.boxes) << "image\tclass\tx0\ty0\tx1\ty1\ncat/0.ppm\tcat\t0\t0\t9\t9\n"
                                   "cat/0.ppm\t0\t20\t20\t29\t29\ncat/1.ppm\tdog\t0\t0\t29\t29\n";
  const EvaluateOutcome outcome = evaluate(request_);
  EXPECT_EQ(outcome.items, 9);
  EXPECT_EQ(outcome.pointing->items, 1); // the second box is of the same picture, the third of another class
  EXPECT_EQ(share(outcome, "chance"), 0.5);
  EXPECT_THAT(outcome.notes, ::testing::Contains(HasSubstr("8 of 9 pictures have no box")));
  std::ofstream(request_.boxes) << "image\tclass\tx0\ty0\tx1\ty1\nother.ppm\tcat\t0\t0\t9\t9\n";
  EXPECT_THAT([&] { evaluate(request_); }, ThrowsMessage<Error>(HasSubstr("boxes.tsv: holds no box")));
  request_.model_folder = testing::make_toy_model(folder_, "bert");
  EXPECT_THAT([&] { evaluate(request_); }, ThrowsMessage<UsageError>(HasSubstr("--boxes")));
}

TEST_F(EvaluateMaps, LimitTakesPicturesOfEveryClass) {
  write_boxes([](const std::string&, int) { return PixelBox{0, 0, 29, 29}; });
  request_.limit = 3;
  EXPECT_EQ(evaluate(request_).items, 3);
  std::filesystem::remove_all(folder_ / "pictures/dog");
  std::filesystem::create_directories(folder_ / "pictures/hen");
  EXPECT_THAT([&] { evaluate(request_); }, ThrowsMessage<UsageError>(HasSubstr("class of the model: hen")));
}

} // namespace
} // namespace hydrascope
