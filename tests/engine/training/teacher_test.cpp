// The model with softmax that a fine-tuning learns from.
#include <filesystem>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/training/loop/training.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using ::testing::HasSubstr;
using testing::make_toy_table;
using ::testing::ThrowsMessage;
using testing::toy_finetuning;
using testing::toy_finetuning_after_a_tail;
using testing::ToyFolder;

TEST(Teacher, IsTheSameModelWithSoftmax) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "back:1=softmax");
  request.trained = {.attention = {1}, .head = false};
  request.distillation_alpha = 1; // the labels do not count
  EXPECT_NEAR(finetune(request).curve.front().second, 0, 1e-6);

  request.schedule = ScheduleText{.replace = {"back:1=hydra-cosine"}};
  request.settings.epochs = 10;
  const TrainingOutcome outcome = finetune(request);
  EXPECT_LT(outcome.final_loss, 0.5 * outcome.curve.front().second);
  EXPECT_GE(outcome.held_out.accuracy, 0.9);

  request.settings.adapters.files.clear(); // no classifier
  request.trained->head = true;
  EXPECT_THAT([&] { finetune(request); }, ThrowsMessage<UsageError>(HasSubstr("--distillation-alpha")));
}

TEST(Teacher, HasNoIndependentLabels) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  const std::filesystem::path file = request.settings.model_folder / "config.json";
  auto config = nlohmann::json::parse(read_text_file(file));
  config["id2label"] = {{"0", "red"}, {"1", "green"}, {"2", "blue"}, {"3", "fish"}};
  config["problem_type"] = "multi_label_classification";
  write_file_atomically(file, config.dump());
  request.distillation_alpha = 0.5;
  EXPECT_THAT([&] { finetune(request); }, ThrowsMessage<UsageError>(HasSubstr("labels are independent")));
}

// What a conversion trained is no teacher: run with softmax it says something else.
TEST(Teacher, IsTheModelAsItWasBeforeAConversion) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "back:1=hydra-cosine");
  request.trained = {.layers = {1}, .head = false};
  finetune(request);
  const std::filesystem::path converted = folder / "converted.safetensors";
  std::filesystem::rename(request.settings.output, converted);

  request.distillation_alpha = 1;
  request.schedule = ScheduleText{.replace = {"back:1=softmax"}};
  EXPECT_NEAR(finetune(request).curve.front().second, 0, 1e-6);
  request.settings.adapters.files.push_back(converted);
  EXPECT_GT(finetune(request).curve.front().second, 1e-3);
}

TEST(Teacher, HasHiddenStates) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "back:1=softmax");
  request.trained = {.attention = {0, 1}, .head = false};
  request.distillation_alpha = 1;
  const auto losses = [&](const char* kernel, double hidden) {
    request.schedule = ScheduleText{.kernel = kernel};
    request.distillation_hidden = hidden;
    const TrainingOutcome outcome = finetune(request);
    return std::pair(outcome.curve.front().second, outcome.final_loss);
  };
  EXPECT_NEAR(losses("softmax", 1).first, 0, 1e-6);
  const double by_logits = losses("hydra-cosine", 0).first;
  request.settings.epochs = 10;
  const auto [first, last] = losses("hydra-cosine", 1);
  EXPECT_GT(first, by_logits);
  EXPECT_LT(last, 0.5 * first);
}

// The loss of the first step, before anything has changed.
double first_loss(FinetuneRequest request, const TrainedParts& trained) {
  request.trained = trained;
  request.settings.epochs = 1;
  return finetune(request).curve.front().second;
}

// The distance from the teacher is the same whichever layers are trained, to the float16 of cached features.
void expect_softmax_below(const FinetuneRequest& request) {
  const double whole = first_loss(request, {.attention = {0, 1}, .head = false});
  EXPECT_GT(whole, 1e-4);
  EXPECT_NEAR(first_loss(request, {.layers = {1}, .head = false}), whole, 0.05 * whole);
  EXPECT_NEAR(first_loss(request, {.head = true}), whole, 0.05 * whole);
}

TEST(Teacher, HasSoftmaxInLayersThatAreNotTrained) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "front:1=hydra-cosine");
  request.distillation_alpha = 1;
  expect_softmax_below(request);

  request.copies = 0; // without a cache
  const double whole = first_loss(request, {.attention = {0, 1}, .head = false});
  EXPECT_NEAR(first_loss(request, {.layers = {1}, .head = false}), whole, 1e-3 * whole);
}

TEST(Teacher, OfTextsHasSoftmaxInLayersThatAreNotTrained) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.settings.model_folder = testing::make_toy_model(folder, "bert");
  request.data = {make_toy_table(folder, 80)};
  request.columns = {.text = 2, .label = 1};
  request.header = true;
  finetune(request);
  request.settings.adapters.files = {request.settings.output};
  request.settings.output = folder / "after.safetensors";
  request.schedule = ScheduleText{.replace = {"front:1=elu"}};
  request.distillation_alpha = 1;
  expect_softmax_below(request);
}

// What a conversion changed below the trained layers is not in the teacher.
TEST(Teacher, IsAsItWasBeforeAConversionBelow) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "front:1=hydra-cosine");
  request.trained = {.layers = {0}, .head = false};
  finetune(request);
  const std::filesystem::path converted = folder / "converted.safetensors";
  std::filesystem::rename(request.settings.output, converted);

  request.distillation_alpha = 1;
  request.schedule = ScheduleText{.replace = {"front:1=softmax"}};
  EXPECT_NEAR(first_loss(request, {.layers = {1}, .head = false}), 0, 1e-6);
  request.settings.adapters.files.push_back(converted);
  EXPECT_GT(first_loss(request, {.layers = {1}, .head = false}), 1e-3);
}

// An adapter below that was trained on larger pictures decides their size, for the teacher, too.
TEST(Teacher, SeesPicturesOfTheSameSize) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "front:1=hydra-cosine");
  request.trained = {.layers = {0}, .head = false};
  request.settings.execution.image_size = 42; // not 28
  finetune(request);
  const std::filesystem::path converted = folder / "converted.safetensors";
  std::filesystem::rename(request.settings.output, converted);

  request.settings.adapters.files.push_back(converted);
  request.settings.execution.image_size.reset();
  request.distillation_hidden = 1; // its distance needs the same number of tokens
  EXPECT_GT(first_loss(request, {.layers = {1}, .head = false}), 0);
}

// Its classifier is that of the tail, not of a conversion to other classes.
TEST(Teacher, HasTheSameClasses) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "back:1=hydra-cosine");
  const std::filesystem::path others = folder / "others";
  std::filesystem::create_directories(others);
  for (const auto& [colour, name] : {std::pair("red", "one"), {"green", "two"}, {"blue", "three"}})
    std::filesystem::rename(request.data.front() / colour, others / name);
  request.data = {others};
  finetune(request);
  request.settings.adapters.files.push_back(request.settings.output);
  request.settings.output = folder / "last.safetensors";
  request.distillation_alpha = 0.5;
  EXPECT_THAT([&] { finetune(request); }, ThrowsMessage<UsageError>(HasSubstr("for these classes")));
}

} // namespace
} // namespace hydrascope
