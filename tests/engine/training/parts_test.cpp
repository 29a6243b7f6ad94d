// The small parts of training: randomness, pictures, classes, the optimizer, checkpoints, metadata.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <set>

#include <sys/resource.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/training/data/augmentation.h"
#include "engine/training/data/epoch_batches.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/loop.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/loop/option_fields.h"
#include "engine/training/loop/trained_parameters.h"
#include "engine/training/loop/training_files.h"
#include "tests/engine/training/toy.h"

namespace hydrascope::training {
namespace {

using hydrascope::testing::ToyFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TrainingRandom, OrdersArePermutationsOfTheirKey) {
  const auto order = shuffled(100, 7);
  EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 100U);
  EXPECT_EQ(order, shuffled(100, 7));
  EXPECT_NE(order, shuffled(100, 8));
  double mean = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) mean += symmetric_beta(0.5, mix({i})) / 1000;
  EXPECT_NEAR(mean, 0.5, 0.05);
}

TEST(TrainingBatches, MayBeLargerThanTheItems) {
  const Items items{3, 1, 2};
  EXPECT_THAT(cut(items, std::int64_t{1} << 31), ElementsAre(items));
  EXPECT_THAT(cut(items, 2), ElementsAre(Items{3, 1}, Items{2}));
  TrainingSettings settings{.batch = std::numeric_limits<int>::max(), .accumulate = 2};
  EXPECT_THAT(own_parts(items, settings), ElementsAre(items));
  settings.accumulate = settings.batch;
  EXPECT_THAT(own_parts(items, settings), ElementsAre(Items{3}, Items{1}, Items{2}));
  EXPECT_EQ(EpochBatches(3, std::numeric_limits<int>::max(), 0, {}).steps_per_epoch(), 1);
}

// Brightens from left to right; grey.
Image a_ramp(const int width, const int height) {
  Image image{width, height, {}};
  for (int i = 0; i < width * height; ++i)
    for (int c = 0; c < 3; ++c)
      image.rgb.push_back(static_cast<std::uint8_t>(40 + 160 * (i % width) / width));
  return image;
}

TEST(TrainingPictures, CopiesAreSquaresThatTheirKeyDecides) {
  const Image image = a_ramp(24, 18);
  EXPECT_EQ(augmented_copy(image, 0, 28, {}, 1).rgb, image.rgb);
  int mirrored = 0;
  for (std::uint64_t key = 0; key < 200; ++key) {
    const Image copy = augmented_copy(image, 1, 28, {}, key);
    ASSERT_EQ(copy.width, 28);
    ASSERT_EQ(copy.height, 28);
    ASSERT_EQ(copy.rgb.size(), 3U * 28 * 28);
    EXPECT_EQ(copy.rgb, augmented_copy(image, 1, 28, {}, key).rgb);
    EXPECT_NE(copy.rgb, augmented_copy(image, 2, 28, {}, key).rgb);
    mirrored += copy.rgb.front() > copy.rgb[3 * 27] ? 1 : 0;
  }
  EXPECT_NEAR(mirrored, 100, 30);
}

TEST(TrainingPictures, EveryAugmentationCanBeSwitchedOff) {
  const Image image = a_ramp(24, 24);
  const Augmentation shape_only{.smallest_crop = 1, .color_jitter = 0, .flip = false};
  const Augmentation colors{.smallest_crop = 1, .color_jitter = 0.4, .flip = false};
  std::set<int> brightest;
  for (std::uint64_t key = 0; key < 20; ++key) {
    const Image plain = augmented_copy(image, 1, 24, shape_only, key);
    EXPECT_LT(plain.rgb.front(), plain.rgb[3 * 23]);
    EXPECT_LE(*std::max_element(plain.rgb.begin(), plain.rgb.end()), 200);
    const Image changed = augmented_copy(image, 1, 24, colors, key);
    for (std::size_t i = 0; i < changed.rgb.size(); i += 3) EXPECT_EQ(changed.rgb[i], changed.rgb[i + 2]);
    brightest.insert(*std::max_element(changed.rgb.begin(), changed.rgb.end()));
  }
  EXPECT_GT(brightest.size(), 8U);
}

TEST(TrainingPictures, SplitsEveryClass) {
  ImageFolder folder;
  for (std::int64_t label = 0; label < 3; ++label)
    for (int i = 0; i < 10; ++i) folder.images.push_back({std::to_string(i), label});
  folder.images.push_back({"alone", 3});
  const ImageFolder held = split_off(folder, 0.2, 5);
  EXPECT_EQ(held.images.size(), 6U);
  EXPECT_EQ(folder.images.size(), 25U);
  EXPECT_EQ(folder.images.back().file, "alone");
}

TEST(TrainingPictures, LabelsAreTheFirstName) {
  const ToyFolder folder;
  std::ofstream(folder / "labels.tsv") << "n1\tgoldfish, Carassius\r\nn2\tcat\n";
  EXPECT_EQ(read_labels(folder / "labels.tsv").at("n1"), "goldfish");
  std::ofstream(folder / "bad.tsv") << "n1 goldfish\n";
  EXPECT_THROW(read_labels(folder / "bad.tsv"), BrokenFile);
}

TEST(TrainingClasses, KnownOnesKeepTheirPlace) {
  const std::vector<AdapterInfo::Class> known{{"n1", "cat"}, {"n2", "dog"}};
  const ClassPlan some = plan_classes({}, {"bird", "dog", "n1"}, known, {});
  EXPECT_FALSE(some.new_head);
  EXPECT_THAT(some.folders, ElementsAre("dog", "n1"));
  EXPECT_THAT(some.targets, ElementsAre(1, 0));
  EXPECT_THAT(some.note, HasSubstr("1 of 3"));
  EXPECT_THROW(plan_classes({"bird", "dog"}, {}, known, {}), UsageError);
  const ClassPlan anew = plan_classes({}, {"x", "y"}, known, {{"x", "ex"}});
  EXPECT_TRUE(anew.new_head);
  EXPECT_EQ(anew.classes[0].label, "ex");
  EXPECT_EQ(anew.classes[1].label, "y");
}

// Both became one class in silence.
TEST(TrainingClasses, ThatDifferOnlyInBytesThatAreNotUtf8AreRefused) {
  EXPECT_THROW(plan_classes({}, {"caf\xe9", "caf\xe8"}, {}, {}), UsageError);
  EXPECT_EQ(plan_classes({}, {"caf\xe9", "bar"}, {}, {}).classes.size(), 2U);
}

double step_of(Optimizer& optimizer, const double learning_rate, const double clip_norm) {
  const at::Tensor norms = optimizer.gradient_norms();
  return optimizer.step(learning_rate, clip_norm,
                        {norms.const_data_ptr<double>(), static_cast<std::size_t>(norms.numel())});
}

TEST(TrainingOptimizer, GoesOnFromItsState) {
  const auto start = [] { return NamedTensors{{"w", at::full({3, 2}, 2.0).requires_grad_(true)}}; };
  const auto step = [](Optimizer& optimizer) {
    const at::Tensor w = optimizer.parameters().at("w");
    (w * w * w).sum().backward();
    return step_of(optimizer, 0.1, 1.0);
  };
  Optimizer whole(start(), 0.05);
  for (int i = 0; i < 6; ++i) step(whole);
  Optimizer first(start(), 0.05);
  for (int i = 0; i < 4; ++i) step(first);
  Optimizer second({{"w", first.parameters().at("w").detach().clone().requires_grad_(true)}}, 0.05);
  second.restore(first.state(), 4, "state");
  for (int i = 0; i < 2; ++i) step(second);
  EXPECT_TRUE(second.parameters().at("w").equal(whole.parameters().at("w")));
  EXPECT_LT(whole.parameters().at("w").max().item<double>(), 2.0);
}

TEST(TrainingOptimizer, LeavesParametersAloneWhereGradientsAreNotFinite) {
  Optimizer optimizer({{"w", at::ones({2}).requires_grad_(true)}}, 0.0);
  (optimizer.parameters().at("w") * std::numeric_limits<double>::infinity()).sum().backward();
  EXPECT_FALSE(std::isfinite(step_of(optimizer, 0.1, 1.0)));
  EXPECT_TRUE(optimizer.parameters().at("w").equal(at::ones({2})));
}

TEST(TrainingOptimizer, StepsAsAdamWDoes) {
  // Decay by lr · λ, then lr · m̂ / (√v̂ + ε), where after one step m̂ = g and v̂ = g².
  const at::Tensor matrix = at::full({2, 2}, 1.0).requires_grad_(true);
  const at::Tensor bias = at::full({2}, 1.0).requires_grad_(true);
  Optimizer optimizer({{"matrix", matrix}, {"bias", bias}}, 0.01);
  (matrix.sum() * 0.5 + bias.sum() * -2.0).backward();
  EXPECT_NEAR(step_of(optimizer, 0.1, 0), std::sqrt(4 * 0.25 + 2 * 4.0), 1e-6);
  EXPECT_NEAR(matrix[0][0].item<double>(), 1 - 0.1 * 0.01 - 0.1, 1e-6);
  EXPECT_NEAR(bias[0].item<double>(), 1 + 0.1, 1e-6) << "biases do not decay";
}

TEST(TrainingOptimizer, WarmsUpAndCoolsDown) {
  EXPECT_DOUBLE_EQ(warmup_cosine(1.0, 0, 4, 100), 0.25);
  EXPECT_DOUBLE_EQ(warmup_cosine(1.0, 3, 4, 100), 1.0);
  EXPECT_DOUBLE_EQ(warmup_cosine(1.0, 4, 4, 100), 1.0);
  EXPECT_NEAR(warmup_cosine(1.0, 52, 4, 100), 0.5, 1e-12);
  EXPECT_NEAR(warmup_cosine(1.0, 100, 4, 100), 0.0, 1e-12);
}

TEST(TrainingLowRank, StartsAtTheWeightAndAddsAProduct) {
  const ToyFolder folder;
  const auto model = load_model(hydrascope::testing::make_toy_model(folder, "bert"));
  const std::string name = "encoder.layer.0.attention.self.query.weight";
  const LowRank update{.rank = 2, .alpha = 3};
  NamedTensors leaves{{"classifier.bias", at::ones({2})}};
  add_factors(leaves, name, model->parameter(name), update, 7);
  ASSERT_EQ(leaves.at(name + ".lora_A").sizes(), (std::vector<std::int64_t>{2, 24}));
  ASSERT_EQ(leaves.at(name + ".lora_B").sizes(), (std::vector<std::int64_t>{24, 2}));
  const NamedTensors start = with_updates(*model, leaves, update);
  EXPECT_EQ(start.size(), 2U);
  EXPECT_TRUE(start.at("classifier.bias").equal(at::ones({2})));
  EXPECT_TRUE(start.at(name).equal(model->parameter(name).to(at::kFloat)));
  leaves[name + ".lora_B"] = at::full({24, 2}, 0.5);
  const at::Tensor added = with_updates(*model, leaves, update).at(name) - model->parameter(name);
  // Every row alike: (α / r)·½·(a₀ + a₁).
  const at::Tensor row = leaves.at(name + ".lora_A").sum(0) * (3.0 / 2 * 0.5);
  EXPECT_LT((added - row).abs().max().item<double>(), 1e-6);
  EXPECT_GT(row.abs().max().item<double>(), 1e-2);
}

TEST(TrainingOptions, AreReadFromTheirTexts) {
  EXPECT_THAT(parse_trained_parts("8-9,11.attention").layers, ElementsAre(8, 9));
  EXPECT_THAT(parse_trained_parts("8-9,11.attention").attention, ElementsAre(11));
  EXPECT_FALSE(parse_trained_parts("8").head);
  EXPECT_EQ(parse_low_rank("rank=4").rank, 4);
  EXPECT_EQ(parse_low_rank("rank=4").alpha, LowRank{}.alpha);
  EXPECT_EQ(parse_low_rank("alpha=3, rank=2").alpha, 3);
  for (const char* wrong : {"4", "rank", "rank=", "rank=0", "rank=4;alpha=2", "size=3"})
    EXPECT_THROW(parse_low_rank(wrong), UsageError) << wrong;
  EXPECT_EQ(parse_chunk_lengths("16-256").least, 16);
  EXPECT_EQ(parse_chunk_lengths("512").most, 512);
  EXPECT_THROW(parse_chunk_lengths("256-16"), UsageError);
}

Checkpoint a_checkpoint(const std::int64_t step, const std::int64_t size) {
  Checkpoint checkpoint;
  checkpoint.configuration = "this";
  checkpoint.step = step;
  checkpoint.curve = {{1, 0.5}};
  checkpoint.best = {.step = 2, .loss = 0.1, .divergence = 0.2, .accuracy = 0.3, .matthews = -0.4, .f1 = 0.5};
  checkpoint.validations = {checkpoint.best};
  checkpoint.sums = {0.1, 1.0 / 3};
  checkpoint.parameters["w"] = at::full({size}, static_cast<double>(step));
  return checkpoint;
}

TEST(TrainingCheckpoint, IsReadAsItWasWritten) {
  const ToyFolder folder;
  save_checkpoint(folder / "c", a_checkpoint(3, 8));
  const Checkpoint read = load_checkpoint(folder / "c", "this");
  EXPECT_EQ(read.step, 3);
  EXPECT_EQ(read.curve, a_checkpoint(3, 8).curve);
  EXPECT_EQ(read.sums, a_checkpoint(3, 8).sums); // to the last bit
  EXPECT_EQ(read.best.matthews, -0.4);
  EXPECT_EQ(read.validations.at(0).f1, 0.5);
  EXPECT_TRUE(read.parameters.at("w").equal(at::full({8}, 3.0)));
  EXPECT_THROW(load_checkpoint(folder / "c", "that"), UsageError);
  EXPECT_THROW(load_checkpoint(folder / "none", "this"), Error);
}

// JSON has no infinity. Checkpoints held it as null, and could not be read again.
TEST(TrainingCheckpoint, APerplexityMayBeInfinite) {
  const ToyFolder folder;
  Checkpoint checkpoint = a_checkpoint(3, 8);
  checkpoint.best.loss = 800;
  checkpoint.best.perplexity = std::numeric_limits<double>::infinity();
  save_checkpoint(folder / "c", checkpoint);
  EXPECT_EQ(load_checkpoint(folder / "c", "this").best.loss, 800);

  auto metadata = SafetensorsFile::open(folder / "c").metadata();
  auto state = nlohmann::json::parse(metadata.at("state"));
  state["best"]["perplexity"] = nullptr;
  metadata["state"] = state.dump();
  write_tensors(folder / "former", checkpoint.parameters, metadata);
  EXPECT_EQ(load_checkpoint(folder / "former", "this").best.loss, 800);
}

TEST(TrainingCheckpoint, AFullDiskLeavesTheFormerOne) {
  const ToyFolder folder;
  save_checkpoint(folder / "c", a_checkpoint(3, 8));
  // A limit on the size of files stands for a disk without room.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(save_checkpoint(folder / "c", a_checkpoint(4, 100'000)), Error);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(load_checkpoint(folder / "c", "this").step, 3);
}

TEST(TrainingMetadata, HoldsNoFolders) {
  EXPECT_EQ(shared_command("distill --resume --data a/b"), "distill --data b");
  EXPECT_EQ(shared_command("hydrascope distill --data /home/me/a.txt,b/c.tsv -o=x/y.safetensors"),
            "hydrascope distill --data a.txt,c.tsv -o=y.safetensors");
  EXPECT_EQ(shared_command("finetune --data /data/train/ -o '/my files/tail.safetensors'"),
            "finetune --data train -o 'tail.safetensors'");
}

} // namespace
} // namespace hydrascope::training
