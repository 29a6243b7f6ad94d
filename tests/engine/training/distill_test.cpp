#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <utility>

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/measure/teacher_forced.h"
#include "engine/models/transformer/model.h"
#include "engine/run/inputs.h"
#include "engine/run/model_store.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/training_files.h"
#include "engine/training/tasks/distill_data.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::toy_distillation;
using testing::ToyFolder;

TEST(Distill, BringsTheWeightsNearerToSoftmax) {
  const ToyFolder folder;
  const DistillRequest request = toy_distillation(folder);
  const TrainingOutcome outcome = distill(request);
  EXPECT_GT(outcome.before.divergence, 1e-3);
  EXPECT_LT(outcome.held_out.divergence, 0.7 * outcome.before.divergence);
  EXPECT_EQ(outcome.adapter.role, "maps");
  EXPECT_EQ(outcome.adapter.base, load_model(request.settings.model_folder)->hash());
  ASSERT_EQ(outcome.adapter.layers.size(), 2U);
  EXPECT_EQ(outcome.adapter.layers[1].kernel.name, "hedgehog");
  EXPECT_FALSE(std::filesystem::exists(checkpoint_path(request.settings.output)));

  const auto model = apply_adapter(load_model(request.settings.model_folder), outcome.adapter, {});
  const KernelParameters maps = model->kernel_parameters(1, request.kernel);
  ASSERT_TRUE(maps.contains("query_map.weight"));
  EXPECT_EQ(maps.at("query_map.weight").sizes(), (std::vector<std::int64_t>{3, 8, 8}));
}

TEST(Distill, EveryHeadKeepsItsOwnBestState) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  request.settings.batch = 1;
  request.settings.validate_every = 5;
  request.settings.learning_rate = 0.1; // so high that heads get worse again
  const TrainingOutcome outcome = distill(request);
  std::vector<double> least = outcome.before.head_losses;
  double best_whole = outcome.before.loss;
  ASSERT_EQ(least.size(), 2U * 3);
  for (const HeldOut& one : outcome.validations) {
    best_whole = std::min(best_whole, one.loss);
    for (std::size_t head = 0; head < least.size(); ++head)
      least[head] = std::min(least[head], one.head_losses[head]);
  }
  EXPECT_EQ(outcome.held_out.head_losses, least);
  EXPECT_NEAR(outcome.held_out.loss, std::accumulate(least.begin(), least.end(), 0.0) / 6, 1e-12);
  EXPECT_LT(outcome.held_out.loss, best_whole);

  // The file has these states: measured by another way, on the lines that were held out.
  std::ifstream text(request.data.front());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const auto split = training::split_items(static_cast<std::int64_t>(lines.size()),
                                           request.settings.validation_share, training::mix({0, 1}));
  std::ofstream held_out(folder / "held-out.txt");
  for (const std::int64_t item : split.held_out) held_out << lines[static_cast<std::size_t>(item)] << '\n';
  held_out.close();
  TeacherForcedRequest measure;
  measure.model_folder = request.settings.model_folder;
  measure.adapters = {.automatic = false, .files = {request.settings.output}};
  measure.data = {folder / "held-out.txt"};
  measure.kernels = {request.kernel};
  const auto measured = measure_teacher_forced(measure);
  EXPECT_NEAR(measured.measures.at(0).mean.kl, outcome.held_out.divergence, 1e-3);
}

TEST(Distill, ReportsEveryStepAndEveryLayer) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  request.settings.epochs = 1;
  int trained = 0, validated = 0;
  const auto outcome = distill(request, [&](const TrainingProgress& progress) {
    if (progress.phase == "train") {
      ++trained;
      EXPECT_EQ(progress.per_layer.size(), 2U);
    } else {
      ++validated;
    }
  });
  EXPECT_EQ(trained, outcome.steps);
  EXPECT_EQ(outcome.curve.size(), static_cast<std::size_t>(outcome.steps));
  EXPECT_EQ(validated, 2); // before and after
}

// The last batch of an epoch is smaller.
TEST(Distill, CountsTheItemsThatRan) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  request.settings.batch = 16; // 38 of 48 lines are trained on
  request.settings.patience = 0;
  double items = 0; // of the epochs to come, by the rate and their time
  const TrainingOutcome outcome = distill(request, [&](const TrainingProgress& progress) {
    if (progress.phase == "train" && progress.total_step == 3)
      items = progress.items_per_second * progress.seconds_left;
  });
  EXPECT_EQ(outcome.steps, 3 * 3);
  EXPECT_NEAR(items, 2 * 38, 1e-6);
}

TEST(Distill, ABatchLargerThanTheDataIsOneStep) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  request.settings.batch = std::numeric_limits<int>::max();
  request.settings.accumulate = 2;
  request.settings.patience = 0;
  EXPECT_EQ(distill(request).steps, 3);
}

TEST(Distill, GoesOnBitForBit) {
  std::string whole, resumed;
  {
    const ToyFolder folder;
    whole = distill(toy_distillation(folder)).adapter.hash;
  }
  {
    const ToyFolder folder;
    DistillRequest request = toy_distillation(folder);
    std::stop_source source;
    const auto stop_at_14 = [&](const TrainingProgress& progress) {
      if (progress.phase == "train" && (progress.epoch - 1) * progress.steps + progress.step == 14)
        source.request_stop();
    };
    const auto first = distill(request, stop_at_14, source.get_token());
    EXPECT_TRUE(first.stopped);
    EXPECT_EQ(first.steps, 14);
    EXPECT_FALSE(std::filesystem::exists(request.settings.output));
    request.settings.resume = true;
    resumed = distill(request).adapter.hash;
  }
  EXPECT_EQ(whole, resumed);
}

TEST(Distill, StartsFromOtherMaps) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  const TrainingOutcome first = distill(request);
  ASSERT_GT(first.before.divergence - first.held_out.divergence, 0.01);
  request.start = request.settings.output;
  request.settings.output = folder / "more.safetensors";
  const TrainingOutcome more = distill(request);
  EXPECT_NEAR(more.before.divergence, first.held_out.divergence, 1e-3) << "float16";
  EXPECT_LT(more.held_out.divergence, first.held_out.divergence);

  // Another kernel's maps of the same shapes.
  request.kernel = {"hedgehog-softmax"};
  request.settings.output = folder / "other.safetensors";
  const double from_others = distill(request).before.divergence;
  const std::filesystem::path start = std::exchange(request.start, {});
  EXPECT_GT(std::abs(distill(request).before.divergence - from_others), 0.01);

  // A file without maps; another start where a training goes on.
  request.start = request.settings.model_folder / "model.safetensors";
  EXPECT_THAT([&] { distill(request); },
              ::testing::ThrowsMessage<UsageError>(HasSubstr("has no maps whose names")));
  request.start = start;
  request.settings.output = folder / "stopped.safetensors";
  std::stop_source source;
  source.request_stop();
  EXPECT_TRUE(distill(request, {}, source.get_token()).stopped);
  request.settings.resume = true;
  request.start = folder / "other.safetensors";
  EXPECT_THROW(distill(request), UsageError);
}

TEST(Distill, RefusesToResumeWhatIsNotTheSame) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  std::stop_source source;
  source.request_stop();
  EXPECT_TRUE(distill(request, {}, source.get_token()).stopped);
  request.settings.resume = true;
  request.settings.batch = 5;
  EXPECT_THROW(distill(request), UsageError);
  request.settings.output = folder / "other.safetensors";
  EXPECT_THROW(distill(request), Error);
}

TEST(Distill, GoesOnWithTheSameDataAlone) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  const auto expect_no_resumption = [&](const auto& change) {
    std::stop_source source;
    const auto stop_at_start = [&](const TrainingProgress&) { source.request_stop(); };
    EXPECT_TRUE(distill(request, stop_at_start, source.get_token()).stopped);
    ASSERT_TRUE(std::filesystem::exists(checkpoint_path(request.settings.output)));
    change();
    request.settings.resume = true;
    EXPECT_THAT([&] { distill(request); }, ::testing::ThrowsMessage<UsageError>(HasSubstr("was made with")));
    request.settings.resume = false;
  };
  expect_no_resumption([&] { // as many lines
    std::ofstream(request.data.front(), std::ios::in | std::ios::binary) << "zz";
  });
  request.settings.model_folder = make_toy_model(folder, "dinov2");
  request.data = {make_toy_pictures(folder, 2)};
  expect_no_resumption([&] { request.settings.execution.image_size = 42; });
  expect_no_resumption([&] {
    std::filesystem::rename(folder / "pictures" / "red" / "1.ppm", folder / "pictures" / "red" / "7.ppm");
  });
  expect_no_resumption([&] { // another of the same name and size
    const std::filesystem::path picture = folder / "pictures" / "red" / "0.ppm";
    std::filesystem::last_write_time(picture,
                                     std::filesystem::last_write_time(picture) + std::chrono::seconds(1));
  });
}

TEST(Distill, KernelsWithoutMapsAreAUsageError) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  for (const char* name : {"softmax", "elu", "hydra-cosine", "hedgehog-untrained"}) {
    request.kernel.name = name;
    EXPECT_THROW(distill(request), UsageError) << name;
  }
  request.kernel.name = "t2r";
  try {
    distill(request);
    FAIL() << "t2r was distilled";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("by finetune"));
  }
}

TEST(Distill, NotANumberStopsWithTheStepAndKeepsTheLastGoodState) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  request.settings.learning_rate = 2e37; // the maps' outputs overflow after the first step
  try {
    distill(request);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 2 of"));
    EXPECT_THAT(error.what(), HasSubstr("maps.safetensors.checkpoint"));
  }
  EXPECT_FALSE(std::filesystem::exists(request.settings.output));
  request.settings.resume = true;
  request.settings.learning_rate = 1e-2;
  const TrainingOutcome outcome = distill(request);
  EXPECT_LT(outcome.held_out.divergence, outcome.before.divergence);
}

TEST(DistillData, ReadsLinesAndColumns) {
  const ToyFolder folder;
  std::ofstream(folder / "a.txt") << "\xef\xbb\xbf"
                                  << "one line\r\n\n  \nanother\n";
  EXPECT_THAT(read_texts(folder / "a.txt", 0, false, 0), ElementsAre("one line", "another"));
  EXPECT_THAT(read_texts(folder / "a.txt", 0, false, 1), ElementsAre("one line"));
  EXPECT_THAT(read_texts(folder / "a.txt", 0, true, 0), ElementsAre("another"));
  std::ofstream(folder / "b.tsv") << "label\ttext\n1\ta \"b\"\n\n0\tc\textra\n2\t\n";
  EXPECT_THAT(read_texts(folder / "b.tsv", 2, true, 0), ElementsAre("a \"b\"", "c"));
  EXPECT_THROW(read_texts(folder / "b.tsv", 3, true, 0), Error);
  EXPECT_THROW(read_texts(folder / "none.txt", 0, false, 0), Error);
}

TEST(DistillData, PairsAreWhatTheModelReadsInTheTask) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  std::ofstream(folder / "pairs.tsv") << "label\tfirst\tsecond\n1\ta cat\tthe dog sat\n0\ta dog\ta cat\n";
  request.data = {folder / "pairs.tsv"};
  request.column = 2;
  request.pair_column = 3;
  request.header = true;
  const auto prepared = training::prepare_model(*make_model_store(), request.settings.model_folder,
                                                request.settings.adapters, {}, {}, true);
  const auto data = training::make_distill_data(prepared, request);
  ASSERT_EQ(data->items(), 2);
  const ModelInput expected = prepared.model->prepare_text("a cat", "the dog sat");
  const ModelInput batch = data->batch({0});
  EXPECT_TRUE(batch.token_ids.equal(expected.token_ids));
  EXPECT_TRUE(batch.token_types.equal(expected.token_types));
  EXPECT_GT(batch.token_types.max().item<std::int64_t>(), 0);
  EXPECT_EQ(data->length(0), expected.token_ids.size(1));

  request.column = 0;
  EXPECT_THROW(training::make_distill_data(prepared, request), UsageError);
  request.column = 3;
  EXPECT_THROW(training::make_distill_data(prepared, request), UsageError);
  request.column = 2;
  request.pair_column = 9;
  EXPECT_THROW(training::make_distill_data(prepared, request), Error);
}

TEST(DistillData, CopiesOfAPictureAreRandomCropsOfIt) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  request.settings.model_folder = make_toy_model(folder, "dinov2");
  request.data = {make_toy_pictures(folder, 2)};
  const auto prepared = training::prepare_model(*make_model_store(), request.settings.model_folder,
                                                request.settings.adapters, {}, {}, true);
  const auto plain = training::make_distill_data(prepared, request);
  EXPECT_EQ(plain->copies(), 1);
  request.copies = 3;
  const auto data = training::make_distill_data(prepared, request),
             again = training::make_distill_data(prepared, request);
  ASSERT_EQ(data->items(), 6);
  ASSERT_EQ(data->copies(), 3);
  for (std::int64_t item = 0; item < 6; ++item) {
    const at::Tensor versions = data->batch({3 * item, 3 * item + 1, 3 * item + 2}).pixels;
    EXPECT_TRUE(versions[0].equal(plain->batch({item}).pixels[0])); // the picture itself
    EXPECT_FALSE(versions[1].equal(versions[0]));
    EXPECT_FALSE(versions[1].equal(versions[2]));
    EXPECT_TRUE(versions.equal(again->batch({3 * item, 3 * item + 1, 3 * item + 2}).pixels));
  }
  request.settings.execution.seed = 1;
  EXPECT_FALSE(
      training::make_distill_data(prepared, request)->batch({1}).pixels.equal(data->batch({1}).pixels));
}

TEST(Distill, TrainsOnEveryCopyButOfHeldOutPictures) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  request.settings.model_folder = make_toy_model(folder, "dinov2");
  request.data = {make_toy_pictures(folder, 2)};
  request.settings.epochs = 1;
  request.settings.batch = 1;
  request.settings.validation_share = 0.34; // two of six
  request.copies = 5;
  const TrainingOutcome outcome = distill(request);
  EXPECT_EQ(outcome.steps, 4 * 5);
  EXPECT_LT(outcome.held_out.divergence, outcome.before.divergence);
  EXPECT_THAT(outcome.adapter.summary, HasSubstr("(6 items, 5 copies each)"));
  request.copies = 1;
  request.settings.output = folder / "plain.safetensors";
  EXPECT_DOUBLE_EQ(distill(request).before.divergence, outcome.before.divergence); // the same are held out
}

TEST(Distill, CopiesAreOfPicturesAndAtLeastOne) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  request.copies = 2;
  EXPECT_THROW(distill(request), UsageError);
  request.settings.model_folder = make_toy_model(folder, "dinov2");
  request.data = {make_toy_pictures(folder, 2)};
  for (const int copies : {0, most_copies + 1}) {
    request.copies = copies;
    EXPECT_THAT([&] { distill(request); },
                ::testing::ThrowsMessage<UsageError>(HasSubstr("--copies: must lie between 1 and 1000")));
  }
}

TEST(Distill, AStopEndsTheReadingOfPictures) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  request.settings.model_folder = make_toy_model(folder, "dinov2");
  request.data = {make_toy_pictures(folder, 2)};
  request.copies = most_copies;
  std::stop_source source;
  source.request_stop();
  const TrainingOutcome outcome = distill(request, {}, source.get_token());
  EXPECT_TRUE(outcome.stopped);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_path(request.settings.output))) << "there is no state yet";
}

// Also one whose parameters are named as those of the registry's kernels.
TEST(Distill, TrainsTheMapsOfATypedKernel) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  const std::string text =
      "parameters = {\"omega\": (\"H d d\", \"identity\")}\nlogarithm = True\n\n"
      "def phi(x, omega):\n    y = x @ omega\n    return torch.cat([y, -y], -1)\n";
  request.kernel = kernel_of_source("typed", text);
  const TrainingOutcome outcome = distill(request);
  EXPECT_EQ(outcome.adapter.layers.front().kernel, request.kernel);
  const auto model = apply_adapter(load_model(request.settings.model_folder), outcome.adapter, {});
  const KernelParameters trained = model->kernel_parameters(0, request.kernel);
  ASSERT_TRUE(trained.contains("query.omega") && trained.contains("key.omega"));
  const at::Tensor start =
      make_kernel(request.kernel)
          ->initial_parameters({model->info().heads, model->info().width / model->info().heads}, 0)
          .at("query.omega");
  EXPECT_GT((trained.at("query.omega").to(at::kFloat) - start).abs().max().item<double>(), 1e-3);
  // They belong to this source alone.
  EXPECT_TRUE(model->kernel_parameters(0, kernel_of_source("typed", text + "\n")).empty());
}

TEST(DistillData, ChunksHaveTheLengthAskedFor) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  request.chunk.most = 16;
  const auto prepared = training::prepare_model(*make_model_store(), request.settings.model_folder,
                                                request.settings.adapters, {}, {}, true);
  const auto data = training::make_distill_data(prepared, request);
  ASSERT_GT(data->items(), 5);
  for (std::int64_t i = 0; i + 1 < data->items(); ++i) EXPECT_EQ(data->length(i), 16);
  const ModelInput batch = data->batch({0, data->items() - 1});
  EXPECT_EQ(batch.token_ids.sizes(), (std::vector<std::int64_t>{2, 16}));
  EXPECT_EQ(batch.mask[1].sum().item<std::int64_t>(), data->length(data->items() - 1));
  EXPECT_EQ(batch.token_ids[0][0].item<std::int64_t>(), batch.token_ids[1][0].item<std::int64_t>());
}

// Tokenizers remove control characters: nothing is left but the ends of a text.
TEST(DistillData, TextsWithoutATokenAreRefused) {
  const ToyFolder folder;
  DistillRequest request = toy_distillation(folder);
  std::ofstream(folder / "lines.txt") << "\x01\x02\n\x01\n\x02\n";
  const auto prepared = training::prepare_model(*make_model_store(), request.settings.model_folder,
                                                request.settings.adapters, {}, {}, true);
  for (const int least : {0, 8}) {
    request.chunk = {least, 16};
    EXPECT_THROW(training::make_distill_data(prepared, request), UsageError) << least;
  }
}

} // namespace
} // namespace hydrascope
