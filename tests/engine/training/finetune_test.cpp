#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/safetensors.h"
#include "engine/models/transformer/model.h"
#include "engine/training/loop/training_files.h"
#include "engine/training/tasks/evaluate.h"
#include "tests/engine/training/toy.h"
#include "tests/support/checkout.h"

namespace hydrascope {
namespace {

using ::testing::HasSubstr;
using testing::make_toy_table;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;
using testing::toy_finetuning;
using testing::toy_finetuning_after_a_tail;
using testing::ToyFolder;

EvaluateRequest evaluation_of(const FinetuneRequest& request, std::vector<std::filesystem::path> adapters) {
  EvaluateRequest evaluation;
  evaluation.model_folder = request.settings.model_folder;
  evaluation.adapters = {.automatic = false, .files = std::move(adapters)};
  evaluation.schedule = request.schedule;
  evaluation.data = request.data.front();
  return evaluation;
}

TEST(Finetune, LearnsAToySetAndWritesATail) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.settings.epochs = 10;
  const TrainingOutcome outcome = finetune(request);
  EXPECT_EQ(outcome.held_out.accuracy, 1.0);
  EXPECT_EQ(outcome.adapter.role, "tail");
  EXPECT_EQ(outcome.adapter.base, load_model(request.settings.model_folder)->hash());
  EXPECT_EQ(outcome.adapter.image_size, 28);
  EXPECT_EQ(outcome.adapter.tokens, 5);
  ASSERT_THAT(outcome.adapter.classes, SizeIs(3));
  EXPECT_EQ(outcome.adapter.classes[0].id, "blue");

  // Only what was trained is stored.
  const SafetensorsFile file = SafetensorsFile::open(request.settings.output);
  EXPECT_TRUE(file.tensors().contains("classifier.weight"));
  EXPECT_TRUE(file.tensors().contains("encoder.layer.1.mlp.fc1.weight"));
  for (const auto& [name, view] : file.tensors()) {
    EXPECT_FALSE(name.starts_with("encoder.layer.0.")) << name;
    EXPECT_EQ(view.type, ElementType::f16) << name;
  }
  const EvaluateOutcome evaluated = evaluate(evaluation_of(request, {request.settings.output}));
  EXPECT_EQ(evaluated.items, 36);
  EXPECT_GE(evaluated.top1, 0.97);
  EXPECT_EQ(evaluated.top5, 1.0);
}

TEST(Finetune, TrainsThroughASchedule) {
  const ToyFolder folder;
  const FinetuneRequest request = toy_finetuning_after_a_tail(folder, "back:1=hydra-cosine");
  const auto& tail = request.settings.adapters.files.front();
  const TrainingOutcome outcome = finetune(request);
  EXPECT_EQ(outcome.adapter.role, "schedule");
  EXPECT_EQ(outcome.adapter.base, read_adapter_info(tail).hash);
  ASSERT_THAT(outcome.adapter.layers, SizeIs(1));
  EXPECT_EQ(outcome.adapter.layers[0].layer, 1);
  EXPECT_EQ(outcome.adapter.layers[0].kernel.name, "hydra-cosine");
  EXPECT_GE(outcome.held_out.accuracy, 0.9);
  EXPECT_GE(evaluate(evaluation_of(request, {tail, request.settings.output})).top1, 0.9);
}

// A tail that replaces all of an earlier one needs it no more.
TEST(Finetune, BuildsOnWhatItDoesNotReplace) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "back:1=softmax");
  request.trained = {.layers = {0, 1}};
  EXPECT_EQ(finetune(request).adapter.base, load_model(request.settings.model_folder)->hash());
  request.trained = {.layers = {0}};
  const std::string tail = read_adapter_info(request.settings.adapters.files.front()).hash;
  EXPECT_EQ(finetune(request).adapter.base, tail);

  // Nor does one that goes on from a conversion, but the tail below it stays.
  request.schedule = ScheduleText{.replace = {"back:1=hydra-cosine"}};
  request.trained = {.layers = {1}, .head = false};
  finetune(request);
  const std::filesystem::path converted = folder / "converted.safetensors";
  std::filesystem::rename(request.settings.output, converted);
  request.settings.adapters.files.push_back(converted);
  request.trained = {.layers = {1}};
  EXPECT_EQ(finetune(request).adapter.base, tail);
  request.trained = {.attention = {1}, .head = false};
  EXPECT_EQ(finetune(request).adapter.base, read_adapter_info(converted).hash);
}

// Adapters that do not build on each other are all named.
TEST(Finetune, NamesAllThatItBuildsOn) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "front:1=hydra-cosine");
  const std::filesystem::path tail = request.settings.adapters.files.front(),
                              other = folder / "other.safetensors";
  request.settings.adapters.files.clear();
  request.trained = {.layers = {0}};
  finetune(request);
  std::filesystem::rename(request.settings.output, other);
  EXPECT_TRUE(read_adapter_info(other).over.empty());

  request.settings.adapters.files = {other, tail};
  request.trained = {.attention = {0}, .head = false};
  const AdapterInfo both = finetune(request).adapter;
  const std::vector<std::string> hashes{read_adapter_info(other).hash, read_adapter_info(tail).hash};
  EXPECT_EQ(both.base, hashes.back());
  EXPECT_EQ(both.over, hashes);
  EXPECT_THROW(evaluate(evaluation_of(request, {tail, both.path})), BrokenFile);
  EXPECT_EQ(evaluate(evaluation_of(request, {other, tail, both.path})).items, 36);

  // What builds on it leads to both. What replaces all of one needs the other alone.
  request.settings.adapters.files.push_back(both.path);
  request.settings.output = folder / "last.safetensors";
  request.trained = {.layers = {1}, .head = false};
  const AdapterInfo last = finetune(request).adapter;
  EXPECT_EQ(last.base, both.hash);
  EXPECT_TRUE(last.over.empty());
  request.settings.adapters.files = {other, tail};
  request.trained = {.layers = {0}};
  EXPECT_EQ(finetune(request).adapter.base, hashes.back());
}

TEST(Finetune, TrainsTheMapsOfAKernel) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.schedule = ScheduleText{.replace = {"back:1=hedgehog"}};
  finetune(request);
  const SafetensorsFile file = SafetensorsFile::open(request.settings.output);
  EXPECT_TRUE(file.tensors().contains("kernel.1.hedgehog.query_map.weight"));
}

// Distils hedgehog's maps in every layer of the request's model.
std::filesystem::path distilled_maps(const FinetuneRequest& request, const std::filesystem::path& output) {
  DistillRequest distillation;
  distillation.settings = request.settings;
  distillation.settings.epochs = 3;
  distillation.settings.learning_rate = 1e-2;
  distillation.settings.output = output;
  distillation.data = request.data;
  distillation.kernel.name = "hedgehog";
  return distill(distillation).adapter.path;
}

TEST(Finetune, HoldsTheMapsOfLayersThatItDoesNotTrain) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  const std::filesystem::path maps = distilled_maps(request, folder / "maps.safetensors");
  request.schedule = ScheduleText{.kernel = "hedgehog"};
  request.settings.adapters.files = {maps};
  EXPECT_EQ(finetune(request).adapter.base, load_model(request.settings.model_folder)->hash());
  const SafetensorsFile given = SafetensorsFile::open(maps),
                        written = SafetensorsFile::open(request.settings.output);
  int kept = 0;
  for (const auto& [name, view] : given.tensors()) {
    const auto found = written.tensors().find(name);
    ASSERT_NE(found, written.tensors().end()) << name;
    if (!name.starts_with("kernel.0.")) continue;
    EXPECT_TRUE(std::ranges::equal(found->second.bytes, view.bytes)) << name;
    ++kept;
  }
  EXPECT_GT(kept, 0);
  EXPECT_EQ(evaluate(evaluation_of(request, {request.settings.output})).top1,
            evaluate(evaluation_of(request, {maps, request.settings.output})).top1);
}

TEST(Finetune, TrainsTheAttentionAlone) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "back:1=hydra-cosine");
  request.trained = {.attention = {1}, .head = false};
  const TrainingOutcome outcome = finetune(request);
  EXPECT_GT(outcome.held_out.accuracy, outcome.before.accuracy - 1e-9);
  const SafetensorsFile file = SafetensorsFile::open(request.settings.output);
  EXPECT_EQ(file.tensors().size(), 8U); // four projections, weight and bias each
  for (const auto& [name, view] : file.tensors())
    EXPECT_TRUE(name.starts_with("encoder.layer.1.attention.")) << name;
}

TEST(Finetune, UpdatesOfLowRankBecomeTheProjections) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "back:1=hedgehog");
  request.trained = {.layers = {1}, .head = false};
  request.low_rank = {.rank = 2, .alpha = 4};
  const TrainingOutcome outcome = finetune(request);
  EXPECT_LT(outcome.held_out.loss, outcome.before.loss);
  const SafetensorsFile file = SafetensorsFile::open(request.settings.output);
  int projections = 0;
  for (const auto& [name, view] : file.tensors()) {
    if (name.starts_with("kernel.1.hedgehog.")) continue;
    ++projections;
    EXPECT_TRUE(name.starts_with("encoder.layer.1.attention.") && name.ends_with(".weight")) << name;
    EXPECT_EQ(view.shape, (std::vector<std::int64_t>{24, 24}));
  }
  EXPECT_EQ(projections, 4);
  // What was validated is what the file holds, to float16.
  const auto evaluated =
      evaluate(evaluation_of(request, {request.settings.adapters.files.front(), request.settings.output}));
  EXPECT_GE(evaluated.top1, outcome.held_out.accuracy - 0.1);
  request.trained = {.head = true};
  EXPECT_THROW(finetune(request), UsageError);
}

TEST(Finetune, LearnsFromATableOfTexts) {
  for (const int pair : {0, 3}) {
    const ToyFolder folder;
    FinetuneRequest request = toy_finetuning(folder);
    request.settings.model_folder = testing::make_toy_model(folder, "bert");
    request.data = {make_toy_table(folder, 80)};
    request.columns = {.text = 2, .pair = pair, .label = 1};
    request.header = true;
    request.trained = {.layers = {0, 1}};
    request.schedule = ScheduleText{.kernel = "elu"};
    request.settings.epochs = 12;
    const TrainingOutcome outcome = finetune(request);
    EXPECT_GE(outcome.held_out.accuracy, 0.9);
    EXPECT_GE(outcome.held_out.matthews, 0.8);
    EXPECT_GE(outcome.held_out.f1, 0.9);
    EXPECT_EQ(outcome.adapter.role, "schedule");
    ASSERT_THAT(outcome.adapter.classes, SizeIs(2));
    EXPECT_EQ(outcome.adapter.classes[1].label, "late");
  }
}

void stop_after_a_step(const FinetuneRequest& request) {
  std::stop_source source;
  const auto stop_at_1 = [&](const TrainingProgress& progress) {
    if (progress.total_step == 1) source.request_stop();
  };
  ASSERT_TRUE(finetune(request, stop_at_1, source.get_token()).stopped);
}

template <typename Change>
void expect_no_resumption(FinetuneRequest request, const Change& change) {
  request.settings.resume = true;
  change(request);
  EXPECT_THAT([&] { finetune(request); }, ThrowsMessage<UsageError>(HasSubstr("was made with")));
}

TEST(Finetune, GoesOnWithTheSamePicturesClassesAndOptionsAlone) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.classes = {"red", "green"};
  request.settings.output = request.data.front() / "tail.safetensors"; // is no data
  stop_after_a_step(request);
  expect_no_resumption(request, [](FinetuneRequest& other) { other.classes = {"red", "blue"}; });
  expect_no_resumption(request, [](FinetuneRequest& other) { other.classes = {"green", "red"}; });
  expect_no_resumption(request, [](FinetuneRequest& other) { other.warmup = 0.1; });
  expect_no_resumption(request, [](FinetuneRequest& other) { other.weight_decay = 0.1; });
  expect_no_resumption(request, [](FinetuneRequest& other) { other.label_smoothing = 0; });
  std::ofstream(folder / "labels.tsv") << "red\tscarlet\n";
  expect_no_resumption(request, [&](FinetuneRequest& other) { other.labels = folder / "labels.tsv"; });
  const auto picture = request.data.front() / "red" / "3.ppm",
             other_name = request.data.front() / "red/30.ppm";
  std::filesystem::rename(picture, other_name);
  expect_no_resumption(request, [](FinetuneRequest&) {});
  std::filesystem::rename(other_name, picture);
  const auto time = std::filesystem::last_write_time(picture);
  std::filesystem::last_write_time(picture, time + std::chrono::seconds(1)); // another of its size
  expect_no_resumption(request, [](FinetuneRequest&) {});
  std::filesystem::last_write_time(picture, time);
  // A copy that keeps times is the same.
  const std::filesystem::path copy = folder / "copy";
  std::filesystem::copy(request.data.front(), copy, std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(copy))
    std::filesystem::last_write_time(
        entry.path(),
        std::filesystem::last_write_time(request.data.front() / entry.path().lexically_relative(copy)));
  request.data = {copy};
  request.settings.resume = true;
  request.settings.learning_rate = 1e-3;
  EXPECT_FALSE(finetune(request).stopped);
}

TEST(Finetune, GoesOnThroughTheSameSourceOfAKernelAlone) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  const std::string text = "def phi(x):\n    return torch.relu(x) + 1\n";
  const auto through = [](const std::string& source) {
    return Schedule{std::vector<KernelSpec>(2, kernel_of_source("typed", source))};
  };
  request.schedule = through(text);
  stop_after_a_step(request);
  expect_no_resumption(request, [&](FinetuneRequest& other) { other.schedule = through(text + "\n"); });
  request.settings.resume = true;
  EXPECT_FALSE(finetune(request).stopped);
}

// Also over those that are not the base of what it writes.
TEST(Finetune, GoesOnOverTheSameAdaptersAlone) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  const std::filesystem::path first = distilled_maps(request, folder / "first.safetensors"),
                              second = distilled_maps(request, folder / "second.safetensors");
  request.schedule = ScheduleText{.kernel = "hedgehog"};
  request.settings.adapters.files = {first, second};
  stop_after_a_step(request);
  expect_no_resumption(request, [&](FinetuneRequest& other) { other.settings.adapters.files = {second}; });
  std::filesystem::rename(second, folder / "kept.safetensors");
  std::filesystem::copy_file(first, second);
  expect_no_resumption(request, [](FinetuneRequest&) {});
  std::filesystem::rename(folder / "kept.safetensors", second);
  request.settings.resume = true;
  EXPECT_FALSE(finetune(request).stopped);
}

TEST(Finetune, GoesOnWithTheSameTableAndColumnsAlone) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.settings.model_folder = testing::make_toy_model(folder, "bert");
  request.data = {make_toy_table(folder, 40)};
  request.columns = {.text = 2, .pair = 3, .label = 1};
  request.header = true;
  stop_after_a_step(request);
  expect_no_resumption(request,
                       [](FinetuneRequest& other) { other.columns = {.text = 3, .pair = 2, .label = 1}; });
  std::string table = read_text_file(request.data.front());
  table[table.size() - 3] = '7'; // the last letter
  std::ofstream(request.data.front()) << table;
  expect_no_resumption(request, [](FinetuneRequest&) {});
}

TEST(Finetune, KeepsTheBestOfWhatItValidated) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.settings.validate_every = 2;
  request.settings.patience = 2;
  request.settings.epochs = 12;
  const TrainingOutcome outcome = finetune(request);
  double best = 0;
  for (const HeldOut& one : outcome.validations) best = std::max(best, one.accuracy);
  EXPECT_EQ(outcome.held_out.accuracy, best);
  EXPECT_GT(outcome.validations.size(), 2U);
  EXPECT_LT(outcome.steps, 12 * 4) << "it stops once it gets no better";
}

TEST(Finetune, KeepsTheStartWhereNothingIsBetter) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning_after_a_tail(folder, "back:1=softmax");
  request.trained = {.layers = {1}, .head = false};
  request.settings.learning_rate = 10; // destroys everything at once
  const TrainingOutcome outcome = finetune(request);
  ASSERT_LT(outcome.validations.front().accuracy, outcome.before.accuracy);
  EXPECT_EQ(outcome.held_out.step, 0);
  EXPECT_EQ(outcome.held_out.accuracy, outcome.before.accuracy);
  const auto& tail = request.settings.adapters.files.front();
  EXPECT_EQ(evaluate(evaluation_of(request, {tail, request.settings.output})).top1,
            evaluate(evaluation_of(request, {tail})).top1);
}

TEST(Finetune, WritesTheStateSoFar) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.settings.live_seconds = 1e-6;
  std::int64_t live = 0;
  finetune(request, [&](const TrainingProgress& progress) {
    if (progress.live_step <= live) return;
    live = progress.live_step;
    EXPECT_EQ(read_adapter_info(progress.live).role, "tail");
  });
  EXPECT_GT(live, 3);
  EXPECT_FALSE(std::filesystem::exists(live_path(request.settings.output)));
}

TEST(Finetune, GoesOnBitForBit) {
  std::string whole, resumed;
  {
    const ToyFolder folder;
    FinetuneRequest request = toy_finetuning(folder);
    request.mixup = 0.3;
    whole = finetune(request).adapter.hash;
  }
  {
    const ToyFolder folder;
    FinetuneRequest request = toy_finetuning(folder);
    request.mixup = 0.3;
    std::stop_source source;
    const auto stop_at_7 = [&](const TrainingProgress& progress) {
      if (progress.phase == "train" && (progress.epoch - 1) * progress.steps + progress.step == 7)
        source.request_stop();
    };
    const auto first = finetune(request, stop_at_7, source.get_token());
    EXPECT_TRUE(first.stopped);
    EXPECT_EQ(first.steps, 7);
    request.settings.resume = true;
    resumed = finetune(request).adapter.hash;
  }
  EXPECT_EQ(whole, resumed);
}

// Without cached copies a step makes its own pictures, and a resumed run makes the same ones.
TEST(Finetune, MakesNewPicturesInEveryStep) {
  std::string whole;
  {
    const ToyFolder folder;
    FinetuneRequest request = toy_finetuning(folder);
    request.copies = 0;
    request.settings.epochs = 10;
    const TrainingOutcome outcome = finetune(request);
    EXPECT_GE(outcome.held_out.accuracy, 0.9);
    whole = outcome.adapter.hash;
    std::int64_t features = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder / "cache" / "hydrascope" / "features"))
      features += entry.path().extension() == ".half" ? 1 : 0;
    EXPECT_EQ(features, 1); // of the held-out pictures
  }
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.copies = 0;
  request.settings.epochs = 10;
  EXPECT_EQ(finetune(request).adapter.hash, whole);
}

TEST(Finetune, LearnsFromPartOfThePatches) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.patch_dropout = 0.5;
  request.settings.epochs = 10;
  EXPECT_GE(finetune(request).held_out.accuracy, 0.9);
  request.copies = 0;
  EXPECT_GE(finetune(request).held_out.accuracy, 0.9);
  request.schedule = ScheduleText{.replace = {"back:1=cosformer"}};
  EXPECT_THAT([&] { finetune(request); }, ThrowsMessage<UsageError>(HasSubstr("cosformer")));
}

TEST(Finetune, SkipsAndNamesWhatItCannotRead) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  const auto broken = request.data.front() / "red" / "broken.png";
  std::filesystem::copy_file(test::source_folder() / "tests/golden/images/pictures/gray.png", broken);
  std::filesystem::resize_file(broken, std::filesystem::file_size(broken) / 2);
  std::vector<std::string> told;
  request.settings.epochs = 1;
  const TrainingOutcome outcome = finetune(request, [&](const TrainingProgress& progress) {
    if (!progress.note.empty()) told.push_back(progress.note);
  });
  ASSERT_THAT(outcome.notes, SizeIs(1));
  EXPECT_THAT(outcome.notes.front(), HasSubstr(broken.string()));
  EXPECT_EQ(told, outcome.notes);
  EXPECT_THAT(outcome.adapter.summary, HasSubstr("3 classes"));
  const EvaluateOutcome evaluated = evaluate(evaluation_of(request, {request.settings.output}));
  EXPECT_EQ(evaluated.items, 36);
  EXPECT_THAT(evaluated.notes, SizeIs(1));
  request.copies = 0; // nobody has read it before the step that needs it
  EXPECT_THAT([&] { finetune(request); }, ThrowsMessage<Error>(HasSubstr(broken.string())));
}

// Names in Latin-1, of all that checkpoints, the cache and adapters name.
TEST(Finetune, GoesOnWithNamesThatAreNotUtf8) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  const std::filesystem::path pictures = folder / "caf\xe9", model = folder / "mod\xe8le";
  std::filesystem::rename(request.data.front(), pictures);
  std::filesystem::rename(pictures / "red", pictures / "ros\xe9");
  std::ofstream(pictures / "blue" / "d\xe9j\xe0.ppm") << "not a picture";
  std::filesystem::rename(request.settings.model_folder, model);
  request.data = {pictures};
  request.settings.model_folder = model;
  request.settings.output = folder / "\xe9t\xe9.safetensors";
  request.settings.epochs = 2;
  std::stop_source source;
  const auto stop_at_3 = [&](const TrainingProgress& progress) {
    if (progress.total_step == 3) source.request_stop();
  };
  EXPECT_TRUE(finetune(request, stop_at_3, source.get_token()).stopped);
  request.settings.resume = true;
  const TrainingOutcome outcome = finetune(request);
  ASSERT_THAT(outcome.adapter.classes, SizeIs(3));
  EXPECT_EQ(outcome.adapter.classes[2].id, "ros\xef\xbf\xbd");
  EXPECT_EQ(evaluate(evaluation_of(request, {request.settings.output})).items, 36)
      << "the folder is that of its class";
}

TEST(Finetune, NotANumberStopsWithTheStepAndKeepsTheLastGoodState) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.settings.learning_rate = 1e20;
  try {
    finetune(request);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("step "));
    EXPECT_THAT(error.what(), HasSubstr("tail.safetensors.checkpoint"));
  }
  EXPECT_FALSE(std::filesystem::exists(request.settings.output));
  request.settings.resume = true;
  request.settings.learning_rate = 5e-3;
  EXPECT_GE(finetune(request).held_out.accuracy, 0.9);
}

TEST(Finetune, ABatchLargerThanTheDataIsOneStep) {
  const ToyFolder folder;
  FinetuneRequest request = toy_finetuning(folder);
  request.settings.batch = std::numeric_limits<int>::max();
  request.settings.accumulate = 2;
  request.settings.epochs = 2;
  double items = 0; // of a step, by the rate and the time that the other one is to take
  const TrainingOutcome outcome = finetune(request, [&](const TrainingProgress& progress) {
    if (progress.phase == "train" && progress.total_step == 1)
      items = progress.items_per_second * progress.seconds_left;
  });
  EXPECT_EQ(outcome.steps, 2);
  EXPECT_NEAR(items, 27, 1e-6); // of 36
}

TEST(Finetune, RefusesWhatMakesNoSense) {
  const ToyFolder folder;
  const FinetuneRequest good = toy_finetuning(folder);
  FinetuneRequest request = good;
  request.trained = {.layers = {2}};
  EXPECT_THROW(finetune(request), UsageError);
  request = good;
  request.classes = {"red", "purple"};
  EXPECT_THROW(finetune(request), Error);
  request = good;
  request.data = {folder / "nowhere"};
  EXPECT_THROW(finetune(request), Error);
  for (const int copies : {-1, most_copies + 1}) {
    request = good;
    request.copies = copies;
    EXPECT_THAT([&] { finetune(request); }, ThrowsMessage<UsageError>(HasSubstr("--copies: must lie")));
  }
  request = good;
  request.trained->head = false; // the three colours need a new classifier
  EXPECT_THROW(finetune(request), UsageError);
  request = good;
  request.settings.execution.device = "cpu";
  request.settings.execution.dtype = "float16";
  EXPECT_THROW(finetune(request), UsageError);
  EXPECT_THROW(evaluate(evaluation_of(good, {})), UsageError); // cat, dog, bird, fish
}

} // namespace
} // namespace hydrascope
