// Fine-tuning of a decoder on next tokens.
#include <cmath>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/measure/perplexity.h"
#include "engine/models/transformer/model.h"
#include "engine/training/tasks/next_token_data.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;
using testing::toy_next_tokens;
using testing::ToyFolder;

// Of the held-out text, in windows as long as the training's pieces; an empty list of adapters: the automatic
// choice.
double perplexity_of(const FinetuneRequest& request, const std::vector<std::filesystem::path>& adapters) {
  PerplexityRequest measure;
  measure.model_folder = request.settings.model_folder;
  measure.adapters = {.automatic = adapters.empty(), .files = adapters};
  measure.schedule = request.schedule;
  measure.data = request.validation;
  measure.window = request.chunk.most;
  // What is left at the end is no piece.
  const auto model = load_model(measure.model_folder);
  const auto tokens = std::ssize(running_text(*model, request.validation));
  measure.limit = tokens / measure.window * measure.window;
  return measure_perplexity(measure).perplexity;
}

TEST(NextTokens, AreLearntFromRunningText) {
  const ToyFolder folder;
  FinetuneRequest request = toy_next_tokens(folder);
  request.trained = TrainedParts{.layers = {0, 1, 2}, .head = true, .embeddings = true};
  const TrainingOutcome outcome = finetune(request);
  EXPECT_LT(outcome.held_out.perplexity, 0.2 * outcome.before.perplexity);
  EXPECT_NEAR(outcome.held_out.perplexity, std::exp(outcome.held_out.loss), 1e-9);
  EXPECT_EQ(outcome.adapter.role, "tail");
  EXPECT_THAT(outcome.adapter.summary, HasSubstr("pieces of 32 tokens"));
  EXPECT_THAT(outcome.adapter.summary, HasSubstr("held-out perplexity"));
  // Measured by another way, from the model and from the file.
  EXPECT_NEAR(perplexity_of(request, {request.settings.output}) / outcome.held_out.perplexity, 1, 5e-3);
  request.settings.output = folder / "nothing.safetensors";
  EXPECT_NEAR(perplexity_of(request, {}) / outcome.before.perplexity, 1, 1e-4);
}

TEST(NextTokens, TrainTheLayersThatTheScheduleReplacesOrAll) {
  const ToyFolder folder;
  FinetuneRequest request = toy_next_tokens(folder);
  request.settings.epochs = 1;
  const auto layers = [&] {
    std::set<int> trained;
    const AdapterInfo adapter = finetune(request).adapter;
    for (const AdapterInfo::Layer& layer : adapter.layers) trained.insert(layer.layer);
    const SafetensorsFile file = SafetensorsFile::open(adapter.path);
    for (const auto& [name, view] : file.tensors())
      EXPECT_TRUE(name.starts_with("encoder.layer.") || name.starts_with("kernel.")) << name;
    return trained;
  };
  EXPECT_THAT(layers(), SizeIs(3));
  request.schedule = ScheduleText{.replace = {"back:1=hedgehog"}};
  EXPECT_EQ(layers(), std::set<int>{2});
}

TEST(NextTokens, UpdatesOfLowRankAreStoredAsFactors) {
  const ToyFolder folder;
  FinetuneRequest request = toy_next_tokens(folder);
  request.schedule = ScheduleText{.kernel = "hedgehog"};
  request.low_rank = LowRank{.rank = 2, .alpha = 4};
  request.settings.learning_rate = 2e-2;
  const TrainingOutcome outcome = finetune(request);
  EXPECT_LT(outcome.held_out.perplexity, 0.9 * outcome.before.perplexity);
  EXPECT_EQ(outcome.adapter.role, "schedule");
  const SafetensorsFile file = SafetensorsFile::open(request.settings.output);
  EXPECT_EQ(file.metadata().at("lora_alpha"), "4");
  const auto shape = [&](const std::string& name) { return file.tensors().at(name).shape; };
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(shape("encoder.layer.1.self_attn.q_proj.weight.lora_A"), (Shape{2, 32}));
  EXPECT_EQ(shape("encoder.layer.1.self_attn.k_proj.weight.lora_B"), (Shape{16, 2}));
  EXPECT_EQ(shape("kernel.0.hedgehog.key_map.weight"), (Shape{2, 8, 8})) << "the maps are trained along";
  EXPECT_EQ(file.tensors().size(), 3U * (2 * 4 + 4));
  EXPECT_NEAR(perplexity_of(request, {request.settings.output}) / outcome.held_out.perplexity, 1, 5e-3);

  // Training goes on from what it has learnt, and needs it.
  request.settings.adapters.files = {request.settings.output};
  request.settings.output = folder / "further.safetensors";
  request.settings.epochs = 1;
  const TrainingOutcome further = finetune(request);
  EXPECT_NEAR(further.before.perplexity / outcome.held_out.perplexity, 1, 5e-3);
  EXPECT_EQ(further.adapter.base, outcome.adapter.hash);
}

TEST(NextTokens, AnAdapterInTheModelsFolderAppliesWhereItFits) {
  const ToyFolder folder;
  FinetuneRequest request = toy_next_tokens(folder);
  request.schedule = ScheduleText{.kernel = "hedgehog"};
  request.low_rank = LowRank{};
  request.settings.output = request.settings.model_folder / "adapters" / "lora.safetensors";
  const TrainingOutcome outcome = finetune(request);
  EXPECT_NEAR(perplexity_of(request, {}) / outcome.held_out.perplexity, 1, 5e-3);
  FinetuneRequest other = request;
  other.schedule = ScheduleText{.kernel = "elu"};
  const double fits_not = perplexity_of(other, {});
  std::filesystem::remove(request.settings.output);
  EXPECT_DOUBLE_EQ(perplexity_of(other, {}), fits_not);
  EXPECT_NEAR(perplexity_of(request, {}) / outcome.before.perplexity, 1, 1e-4);
}

TEST(NextTokens, MapsThatWereDistilledAreTheStart) {
  const ToyFolder folder;
  FinetuneRequest request = toy_next_tokens(folder);
  DistillRequest distillation;
  distillation.settings = request.settings;
  distillation.settings.output = folder / "maps.safetensors";
  distillation.settings.learning_rate = 1e-2;
  distillation.data = request.data;
  distillation.chunk = request.chunk;
  distillation.kernel.name = "hedgehog";
  distill(distillation);
  request.schedule = ScheduleText{.kernel = "hedgehog"};
  request.low_rank = LowRank{};
  request.settings.epochs = 1;
  const double identity = finetune(request).before.perplexity;
  request.settings.adapters.files = {distillation.settings.output};
  const TrainingOutcome outcome = finetune(request);
  EXPECT_GT(std::abs(outcome.before.perplexity / identity - 1), 1e-3);
  EXPECT_NEAR(perplexity_of(request, {distillation.settings.output}) / outcome.before.perplexity, 1, 1e-3);
  EXPECT_EQ(outcome.adapter.base, load_model(request.settings.model_folder)->hash())
      << "it holds the maps as they are now";
}

// The logits of a batch are made 256 tokens at a time, and those of a part are fewer.
TEST(NextTokens, TheLossOfManyTokensIsThatOfItsParts) {
  const ToyFolder folder;
  FinetuneRequest request = toy_next_tokens(folder);
  request.settings.epochs = 2;
  request.settings.batch = 10;
  request.trained = TrainedParts{.layers = {1, 2}, .head = true, .embeddings = true};
  const auto whole = finetune(request).curve;
  request.settings.accumulate = 10;
  const auto parts = finetune(request).curve;
  ASSERT_EQ(parts.size(), whole.size());
  ASSERT_GT(whole.size(), 4U);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i].second, whole[i].second, 2e-4);
}

TEST(NextTokens, GoesOnBitForBit) {
  std::string whole, resumed;
  {
    const ToyFolder folder;
    FinetuneRequest request = toy_next_tokens(folder);
    request.low_rank = LowRank{};
    whole = finetune(request).adapter.hash;
  }
  {
    const ToyFolder folder;
    FinetuneRequest request = toy_next_tokens(folder);
    request.low_rank = LowRank{};
    std::stop_source source;
    const auto stop_at_7 = [&](const TrainingProgress& progress) {
      if (progress.phase == "train" && progress.total_step == 7) source.request_stop();
    };
    EXPECT_TRUE(finetune(request, stop_at_7, source.get_token()).stopped);
    request.settings.resume = true;
    resumed = finetune(request).adapter.hash;
  }
  EXPECT_EQ(whole, resumed);
}

TEST(NextTokens, GoOnWithTheSameTextAlone) {
  const ToyFolder folder;
  FinetuneRequest request = toy_next_tokens(folder);
  std::stop_source source;
  const auto stop_at_1 = [&](const TrainingProgress& progress) {
    if (progress.total_step == 1) source.request_stop();
  };
  EXPECT_TRUE(finetune(request, stop_at_1, source.get_token()).stopped);
  request.settings.resume = true;
  // The same sentences in another order are as many tokens.
  std::ifstream held_out(request.validation);
  std::string reversed;
  for (std::string line; std::getline(held_out, line);) reversed.insert(0, line + "\n");
  std::ofstream(request.validation) << reversed;
  EXPECT_THAT([&] { finetune(request); }, ThrowsMessage<UsageError>(HasSubstr("was made with")));
}

std::filesystem::path make_answers(const ToyFolder& folder) {
  std::ofstream table(folder / "answers.tsv");
  table << "prompt\tanswer\n";
  for (int i = 0; i < 12; ++i)
    table << "the " << (i % 2 == 0 ? "hedgehog" : "token") << " line\\nof " << i << "\t"
          << (i % 2 == 0 ? "the hedgehog meets" : "a head") << "\n";
  return folder / "answers.tsv";
}

FinetuneRequest of_answers(const ToyFolder& folder) {
  FinetuneRequest request = toy_next_tokens(folder);
  request.data = {make_answers(folder)};
  request.validation.clear();
  request.settings.validation_share = 0.25;
  request.header = true;
  request.answer_column = 2;
  request.prompt_template = R"(Say:\n{}\nAnswer:)";
  request.chunk = {};
  return request;
}

TEST(NextTokenData, OfAnswersScoresTheirTokensAlone) {
  const ToyFolder folder;
  const FinetuneRequest request = of_answers(folder);
  const auto prepared = training::prepare_model(*make_model_store(), request.settings.model_folder,
                                                request.settings.adapters, {}, {}, true);
  const training::NextTokenData data(prepared, request);
  EXPECT_EQ(data.items(training::Part::training), 9);
  EXPECT_EQ(data.items(training::Part::held_out), 3);
  for (std::int64_t item = 0; item < 9; ++item) {
    const auto batch = data.batch(training::Part::training, {item});
    const auto stream = prepared.model->token_stream();
    std::string answer;
    for (std::int64_t i = 0; i + 1 < batch.targets.size(0); ++i)
      answer += stream->add(batch.targets[i].item<std::int64_t>());
    EXPECT_TRUE(answer == " the hedgehog meets" || answer == " a head") << answer;
    EXPECT_TRUE(prepared.model->ends_text(batch.targets[-1].item<std::int64_t>()));
    // They are predicted from the tokens before, the prompt within its template.
    std::string prompt;
    const std::int64_t before = batch.input.read[0].item<std::int64_t>();
    for (std::int64_t i = 0; i <= before; ++i)
      prompt += stream->add(batch.input.token_ids[0][i].item<std::int64_t>());
    EXPECT_TRUE(prompt.starts_with("Say:\nthe ") && prompt.ends_with("\nAnswer:")) << prompt;
    EXPECT_EQ(batch.input.read.size(0), batch.targets.size(0));
    EXPECT_EQ(data.scored(training::Part::training, {item}), batch.targets.size(0));
  }
  // In a batch positions are counted over all rows.
  const auto two = data.batch(training::Part::training, {0, 1});
  EXPECT_EQ(two.targets.size(0), data.scored(training::Part::training, {0, 1}));
  EXPECT_GE(two.input.read[-1].item<std::int64_t>(), two.input.token_ids.size(1));
}

TEST(NextTokenData, CutsPromptsThatAreTooLong) {
  const ToyFolder folder;
  FinetuneRequest request = of_answers(folder);
  request.chunk = {0, 30};
  const auto prepared = training::prepare_model(*make_model_store(), request.settings.model_folder,
                                                request.settings.adapters, {}, {}, true);
  const training::NextTokenData data(prepared, request);
  for (std::int64_t item = 0; item < 9; ++item) EXPECT_LE(data.length(training::Part::training, item), 30);
  EXPECT_THAT(data.notes(), SizeIs(1));
}

TEST(NextTokens, OfAnswersAreLearnt) {
  const ToyFolder folder;
  FinetuneRequest request = of_answers(folder);
  request.trained = TrainedParts{.layers = {0, 1, 2}, .head = true, .embeddings = true};
  request.settings.epochs = 15;
  request.settings.learning_rate = 1e-2;
  const TrainingOutcome outcome = finetune(request);
  EXPECT_LT(outcome.held_out.perplexity, outcome.before.perplexity / 4);
  EXPECT_THAT(outcome.adapter.summary, HasSubstr("9 answers"));
}

TEST(NextTokens, RefuseWhatMakesNoSense) {
  const ToyFolder folder;
  const FinetuneRequest good = toy_next_tokens(folder);
  const auto refused = [&](const char* part, const auto& change) {
    FinetuneRequest request = good;
    change(request);
    EXPECT_THAT([&] { finetune(request); }, ThrowsMessage<UsageError>(HasSubstr(part)));
  };
  refused("--objective", [](FinetuneRequest& request) { request.objective = Objective::classification; });
  refused("--mixup", [](FinetuneRequest& request) { request.mixup = 0.5; });
  refused("--distillation-alpha", [](FinetuneRequest& request) { request.distillation_alpha = 0.5; });
  refused("--classes", [](FinetuneRequest& request) { request.classes = {"a"}; });
  refused("--chunk", [](FinetuneRequest& request) { request.chunk.most = 513; });
  refused("--lora", [](FinetuneRequest& request) {
    request.low_rank = LowRank{};
    request.trained = TrainedParts{};
  });
  refused("--answer-column", [&](FinetuneRequest& request) { request.data = {make_answers(folder)}; });
  refused("--template", [&](FinetuneRequest& request) {
    request.data = {make_answers(folder)};
    request.answer_column = 2;
    request.prompt_template = "no place";
  });
  const ToyFolder other;
  FinetuneRequest bert = toy_next_tokens(other);
  bert.settings.model_folder = testing::make_toy_model(other, "bert");
  bert.objective = Objective::next_token;
  EXPECT_THAT([&] { finetune(bert); }, ThrowsMessage<UsageError>(HasSubstr("--objective")));
}

// The weights that a single step leaves are validated before they are kept.
TEST(NextTokens, AHeldOutLossThatIsNotANumberStopsWithTheStepAndKeepsTheLastGoodState) {
  const ToyFolder folder;
  FinetuneRequest request = toy_next_tokens(folder);
  request.settings.batch = 1000;
  request.settings.learning_rate = 1e30;
  EXPECT_THAT([&] { finetune(request); },
              ThrowsMessage<Error>(AllOf(HasSubstr("step 1 of 3: the held-out loss is not a number"),
                                         HasSubstr("tuned.safetensors.checkpoint"))));
  request.settings.resume = true;
  request.settings.learning_rate = 5e-3;
  const TrainingOutcome outcome = finetune(request);
  EXPECT_EQ(outcome.steps, 3);
  EXPECT_TRUE(std::isfinite(outcome.held_out.perplexity));
  EXPECT_DOUBLE_EQ(outcome.before.perplexity, std::exp(outcome.before.loss)) << "of a checkpoint";
}

// Bytes became U+FFFD in silence.
TEST(NextTokens, RefuseATextThatIsNotUtf8) {
  const ToyFolder folder;
  const FinetuneRequest request = toy_next_tokens(folder);
  std::ofstream(request.data.front(), std::ios::app) << "the line\nof a caf\xe9.\n";
  EXPECT_THAT([&] { finetune(request); },
              ThrowsMessage<Error>(HasSubstr("line 62: byte 9 (0xe9) is not UTF-8")));
  const auto model = load_model(request.settings.model_folder);
  EXPECT_FALSE(running_text(*model, request.data.front(), 40).empty()) << "what is before it is read";
}

TEST(NextTokens, InBfloat16AreTheSameWithinItsPrecision) {
  const ToyFolder folder;
  FinetuneRequest request = toy_next_tokens(folder);
  request.low_rank = LowRank{};
  request.schedule = ScheduleText{.kernel = "hedgehog"};
  const TrainingOutcome exact = finetune(request);
  request.settings.execution.dtype = "bfloat16";
  const TrainingOutcome rounded = finetune(request);
  EXPECT_NEAR(rounded.held_out.loss, exact.held_out.loss, 0.05);
  EXPECT_NE(rounded.held_out.loss, exact.held_out.loss);
}

} // namespace
} // namespace hydrascope
