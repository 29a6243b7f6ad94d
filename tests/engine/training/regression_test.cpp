// Fine-tuning to numbers, and what then evaluates and predicts them.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/run/predicted_number.h"
#include "engine/run/runner.h"
#include "engine/training/data/data_hash.h"
#include "engine/training/data/sampling.h"
#include "engine/training/tasks/evaluate.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing::toy_finetuning;
using testing::ToyFolder;

// Pairs of texts of letters. The label is how many of each text's five are of the alphabet's first half (0 to
// 5), times `unit`, plus `zero`.
std::filesystem::path make_scored_table(const ToyFolder& folder, const double zero, const double unit) {
  std::ofstream table(folder / "scored.tsv");
  table << "score\tfirst\tsecond\n";
  for (std::uint64_t line = 0; line < 180; ++line) {
    const std::uint64_t early = line % 6;
    table << zero + unit * static_cast<double>(early);
    for (std::uint64_t column = 0; column < 2; ++column) {
      table << '\t';
      for (std::uint64_t i = 0; i < 5; ++i)
        table << static_cast<char>('a' + static_cast<char>(training::mix({line, column, i}) % 13) +
                                   (i < early ? 0 : 13))
              << ' ';
    }
    table << '\n';
  }
  return folder / "scored.tsv";
}

FinetuneRequest scored_finetuning(const ToyFolder& folder, const double zero = 0, const double unit = 1) {
  FinetuneRequest request = toy_finetuning(folder);
  request.objective = Objective::regression;
  request.settings.model_folder = testing::make_toy_model(folder, "bert");
  request.data = {make_scored_table(folder, zero, unit)};
  request.columns = {.text = 2, .pair = 3, .label = 1};
  request.header = true;
  request.trained = {.layers = {0, 1}, .embeddings = true};
  request.settings.epochs = 30;
  request.settings.execution.threads = 1; // for so small a model others cost more than they gain
  request.settings.output = folder / "scored.safetensors";
  return request;
}

EvaluateRequest evaluation_of_scores(const FinetuneRequest& request,
                                     std::vector<std::filesystem::path> adapters) {
  EvaluateRequest evaluation;
  evaluation.model_folder = request.settings.model_folder;
  evaluation.adapters = {.automatic = false, .files = std::move(adapters)};
  evaluation.schedule = request.schedule;
  evaluation.data = request.data.front();
  evaluation.columns = request.columns;
  evaluation.header = true;
  return evaluation;
}

TEST(Regression, LearnsNumbersAndPredictsThemInTheirUnit) {
  const ToyFolder folder;
  FinetuneRequest request = scored_finetuning(folder, 1990, 10);
  const TrainingOutcome outcome = finetune(request);
  EXPECT_GT(outcome.held_out.pearson, 0.7);
  EXPECT_GT(outcome.held_out.spearman, 0.7);
  EXPECT_LT(outcome.held_out.loss, 0.6) << "of standardised labels, whose variance is 1";
  EXPECT_NEAR(outcome.before.loss, 1, 0.5) << "a new classifier predicts their mean";
  EXPECT_EQ(outcome.adapter.role, "tail");
  EXPECT_EQ(outcome.adapter.data_hash, training::data_hash(request.data));
  double best = -1;
  for (const HeldOut& one : outcome.validations) best = std::max(best, (one.pearson + one.spearman) / 2);
  EXPECT_EQ((outcome.held_out.pearson + outcome.held_out.spearman) / 2, best);

  const EvaluateOutcome evaluated = evaluate(evaluation_of_scores(request, {request.settings.output}));
  EXPECT_EQ(evaluated.items, 180);
  EXPECT_EQ(evaluated.classes, 1);
  EXPECT_GT(evaluated.pearson.value(), 0.8);
  EXPECT_GT(evaluated.spearman.value(), 0.8);
  EXPECT_LT(evaluated.squared_error.value(), 0.4 * 292) << "labels have the variance 35/12 · 10²";
  EXPECT_FALSE(evaluated.matthews);

  std::ifstream written(request.settings.output, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(written), {}};
  const std::string deviation = "\"label_deviation\":\"";
  bytes[bytes.find(deviation) + deviation.size()] = '-';
  std::ofstream(folder / "broken.safetensors", std::ios::binary) << bytes;
  EXPECT_THAT([&] { evaluate(evaluation_of_scores(request, {folder / "broken.safetensors"})); },
              ThrowsMessage<Error>(HasSubstr("no scale of its classifier")));

  Runner runner;
  RunRequest run;
  run.model_folder = request.settings.model_folder;
  run.adapters = {.automatic = false, .files = {request.settings.output}};
  run.input = TextInput{"a b c d e", "f g h i j"};
  const auto early = runner.run(run);
  run.input = TextInput{"p q r s t", "u v w x y"};
  const auto late = runner.run(run);
  ASSERT_TRUE(predicts_number(early->model));
  ASSERT_EQ(early->predictions.size(), 1U);
  EXPECT_NEAR(early->predictions.front().logit, 2040, 30);
  EXPECT_NEAR(late->predictions.front().logit, 1990, 30);
  EXPECT_GT(early->predictions.front().logit - late->predictions.front().logit, 10);
}

// What is converted starts from the classifier in the labels' unit.
TEST(Regression, GoesOnThroughAnotherKernel) {
  const ToyFolder folder;
  FinetuneRequest request = scored_finetuning(folder, 3, 0.5);
  const TrainingOutcome whole = finetune(request);
  const std::filesystem::path first = request.settings.output;
  request.settings.adapters.files = {first};
  request.settings.output = folder / "again.safetensors";
  request.settings.epochs = 1;
  const TrainingOutcome again = finetune(request);
  EXPECT_NEAR(again.before.loss, whole.held_out.loss, 0.02) << "it starts where the first one ended";

  request.schedule = ScheduleText{.kernel = "hydra-cosine"};
  request.settings.epochs = 12;
  const TrainingOutcome converted = finetune(request);
  EXPECT_EQ(converted.adapter.role, "schedule");
  EXPECT_GT(converted.held_out.pearson, 0.6);
  EXPECT_GT(evaluate(evaluation_of_scores(request, {first, request.settings.output})).pearson.value(), 0.6);

  // The classifier stays as it is, and predicts in the labels' unit.
  request.schedule = {};
  request.trained = {.layers = {1}, .head = false};
  request.settings.epochs = 1;
  const TrainingOutcome without_head = finetune(request);
  EXPECT_NEAR(without_head.before.loss, whole.held_out.loss, 0.02);
  EXPECT_FALSE(SafetensorsFile::open(request.settings.output).metadata().contains("label_deviation"));
}

TEST(Regression, GoesOnBitForBit) {
  std::string whole;
  {
    const ToyFolder folder;
    FinetuneRequest request = scored_finetuning(folder);
    request.settings.epochs = 2;
    request.low_rank = LowRank{.rank = 2, .alpha = 4};
    request.trained->embeddings = false;
    whole = finetune(request).adapter.hash;
  }
  const ToyFolder folder;
  FinetuneRequest request = scored_finetuning(folder);
  request.settings.epochs = 2;
  request.low_rank = LowRank{.rank = 2, .alpha = 4};
  request.trained->embeddings = false;
  std::stop_source source;
  const auto stop_at_5 = [&](const TrainingProgress& progress) {
    if (progress.phase == "train" && progress.step == 5) source.request_stop();
  };
  EXPECT_TRUE(finetune(request, stop_at_5, source.get_token()).stopped);
  request.settings.resume = true;
  EXPECT_EQ(finetune(request).adapter.hash, whole);
}

TEST(Regression, BadDataAndOptionsSayWhatIsWrong) {
  const ToyFolder folder;
  const auto train = [&](const auto& change) {
    FinetuneRequest request = scored_finetuning(folder);
    request.settings.epochs = 1;
    change(request);
    finetune(request);
  };
  EXPECT_THAT(
      [&] { train([](FinetuneRequest& request) { request.header = false; }); },
      ThrowsMessage<Error>(AllOf(HasSubstr("scored.tsv: the label \"score\" of \"first\" is no number"),
                                 HasSubstr("--label-column"))));
  EXPECT_THAT([&] { train([](FinetuneRequest& request) {
                      request.classes = {"1", "2"};
                    }); },
              ThrowsMessage<UsageError>(HasSubstr("--classes")));
  EXPECT_THAT([&] { train([](FinetuneRequest& request) { request.distillation_alpha = 0.5; }); },
              ThrowsMessage<UsageError>(HasSubstr("--distillation-alpha")));
  EXPECT_THAT(
      [&] {
        train([&](FinetuneRequest& request) {
          request.settings.model_folder = testing::make_toy_model(folder, "dinov2");
        });
      },
      ThrowsMessage<UsageError>(HasSubstr("--objective regression")));
  std::ofstream(folder / "same.tsv") << "2\ta b\tc\n2\td e\tf\n2\tg\th\n";
  EXPECT_THAT(
      [&] {
        train([&](FinetuneRequest& request) {
          request.data = {folder / "same.tsv"};
          request.header = false;
        });
      },
      ThrowsMessage<Error>(HasSubstr("the same number")));

  // A classifier of numbers is not taken for one of classes, nor labels in words for numbers.
  train([](FinetuneRequest&) {});
  EXPECT_THAT(
      [&] {
        train([&](FinetuneRequest& request) {
          request.objective = Objective::classification;
          request.settings.adapters.files = {request.settings.output};
          request.settings.output = folder / "classes.safetensors";
        });
      },
      ThrowsMessage<UsageError>(HasSubstr("--objective")));
  const FinetuneRequest request = scored_finetuning(folder);
  EvaluateRequest evaluation = evaluation_of_scores(request, {request.settings.output});
  evaluation.header = false;
  EXPECT_THAT([&] { evaluate(evaluation); }, ThrowsMessage<Error>(HasSubstr("is no number")));
}

} // namespace
} // namespace hydrascope
