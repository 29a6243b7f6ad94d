// A decoder from text to text: tokens, losses, perplexity and greedy writing as transformers gives them, and
// that what is written by state does not depend on how it was read.
#include "engine/run/generate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/measure/generation_speed.h"
#include "engine/measure/perplexity.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/quantities/token_loss.h"
#include "engine/run/runner.h"
#include "tests/engine/models/golden.h"

namespace hydrascope::test {
namespace {

std::filesystem::path written_model() { return golden_folder() / "decoders" / "written"; }

struct Written {
  std::string text;
  std::map<std::string, at::Tensor> expected;
};

const Written& written() {
  static const Written all = [] {
    const auto file = written_model() / "expected.safetensors";
    const auto input = nlohmann::json::parse(SafetensorsFile::open(file).metadata().at("input"));
    return Written{input.at("text").get<std::string>(), read_tensors(file)};
  }();
  return all;
}

RunRequest request_of(const std::string& text, QuantityKeys keys) {
  RunRequest request;
  request.model_folder = written_model();
  request.adapters.automatic = false;
  request.input = TextInput{text, std::nullopt};
  request.quantities = std::move(keys);
  return request;
}

at::Tensor tensor_of_array(const Array& array) {
  return at::from_blob(const_cast<float*>(array.values.data()), array.shape).clone();
}

GenerateRequest generation(const std::string& kernel = "softmax") {
  GenerateRequest request;
  request.model_folder = written_model();
  request.adapters.automatic = false;
  request.schedule = ScheduleText{.kernel = kernel};
  request.text = written().text;
  request.tokens = 12;
  request.stop_at_end = false;
  return request;
}

std::vector<int> ids_of(const GenerateOutcome& outcome) {
  std::vector<int> ids;
  for (const GeneratedToken& token : outcome.tokens) ids.push_back(token.id);
  return ids;
}

TEST(DecoderRun, PredictsTheNextTokenOfAnyToken) {
  const auto& expected = written().expected;
  const auto result = Runner().run(request_of(written().text, {TokenLossKey{}, LogitsKey{}}));
  ASSERT_EQ(static_cast<std::int64_t>(result->tokens.size()), expected.at("input_ids").size(1));
  const at::Tensor last = expected.at("last")[0];
  EXPECT_EQ(result->predictions.front().index, last.argmax().item<std::int64_t>());
  EXPECT_NEAR(result->predictions.front().logit, last.max().item<double>(),
              1e-4 * last.abs().max().item<double>());
  EXPECT_EQ(result->predictions.size(), 100U);
  const auto* const loss = result->quantities.find(TokenLossKey{});
  ASSERT_NE(loss, nullptr);
  EXPECT_TRUE(close_to(tensor_of_array(loss->loss), expected.at("loss")));
  const at::Tensor logits = tensor_of_array(*result->quantities.find(LogitsKey{}));
  ASSERT_EQ(logits.size(1), expected.at("input_ids").size(1));
  EXPECT_TRUE(close_to(logits[0][-1], last));
  for (const std::int64_t token : {3, 20}) { // the rank is the number of tokens before the true one
    const std::int64_t next = expected.at("input_ids")[0][token + 1].item<std::int64_t>();
    const at::Tensor row = logits[0][token];
    EXPECT_EQ(loss->rank.values[static_cast<std::size_t>(token)], row.gt(row[next]).sum().item<float>());
    RunRequest asked = request_of(written().text, {});
    asked.default_query = false;
    asked.query = token;
    EXPECT_EQ(Runner().run(asked)->predictions.front().index, row.argmax().item<std::int64_t>());
  }
}

TEST(DecoderRun, FocusMapsExplainTheQuerysNextToken) {
  RunRequest request = request_of(written().text, {FocusKey{1}});
  const auto last = Runner().run(request);
  const auto count = static_cast<std::int64_t>(last->tokens.size());
  EXPECT_EQ(last->query, count - 1);
  EXPECT_THAT(last->target, testing::StartsWith("logit of "));
  request.default_query = false;
  request.query = 7;
  const auto early = Runner().run(request);
  const FocusResult* const focus = early->quantities.find(FocusKey{1});
  ASSERT_NE(focus, nullptr);
  double sum = 0, later = 0;
  for (std::size_t token = 0; token < focus->contributions.values.size(); ++token) {
    sum += static_cast<double>(focus->contributions.values[token]);
    if (token > 7) later += std::abs(static_cast<double>(focus->contributions.values[token]));
  }
  EXPECT_NEAR(sum, focus->total, 1e-4 * std::max(1.0, std::abs(focus->total)));
  EXPECT_EQ(later, 0); // a token attends to none after it
  request.query = count;
  EXPECT_THROW(Runner().run(request), UsageError);
}

TEST(DecoderRun, TargetsAreTokens) {
  RunRequest request = request_of("The keys answer", {FocusKey{0}});
  request.target = parse_target("class: the");
  const auto result = Runner().run(request);
  EXPECT_EQ(result->target, "logit of the next token “ the”");
  request.target = parse_target("class:no single token");
  EXPECT_THAT(message_of<UsageError>([&] { Runner().run(request); }), testing::HasSubstr("is not one token"));
  request.target = parse_target("class:320");
  EXPECT_THAT(message_of<UsageError>([&] { Runner().run(request); }), testing::HasSubstr("320 tokens"));
}

TEST(DecoderRun, TakesNoPairsAndHidesNotTheLastToken) {
  RunRequest request = request_of("The keys answer", {});
  request.input = TextInput{"one", "two"};
  EXPECT_THROW(Runner().run(request), UsageError);
  request.input = TextInput{"The keys answer", std::nullopt};
  const auto count = static_cast<std::int64_t>(Runner().run(request)->tokens.size());
  request.hidden_tokens = {0, 1};
  EXPECT_TRUE(Runner().run(request)->whole);
  request.hidden_tokens = {count - 1};
  EXPECT_THROW(Runner().run(request), UsageError);
}

TEST(Generate, WritesAsTransformersDoes) {
  const GenerateOutcome outcome = generate(generation());
  const at::Tensor expected = written().expected.at("written")[0];
  ASSERT_EQ(static_cast<std::int64_t>(outcome.tokens.size()), expected.size(0));
  for (std::int64_t i = 0; i < expected.size(0); ++i)
    EXPECT_EQ(outcome.tokens[static_cast<std::size_t>(i)].id, expected[i].item<std::int64_t>()) << i;
  EXPECT_EQ(outcome.ended, "tokens");
}

class GenerateWith : public testing::TestWithParam<const char*> {};

// What was written before is read at once, and what follows is the same.
TEST_P(GenerateWith, GoesOnAlikeAfterAStop) {
  GenerateRequest request = generation(GetParam());
  request.sampling = {.temperature = 0.8, .top_p = 0.9, .seed = 5};
  request.tokens = 24;
  const std::vector<int> whole = ids_of(generate(request));
  ASSERT_EQ(whole.size(), 24U);
  request.written.assign(whole.begin(), whole.begin() + 9);
  request.tokens = 15;
  EXPECT_EQ(ids_of(generate(request)), std::vector<int>(whole.begin() + 9, whole.end()));
}

TEST_P(GenerateWith, PredictsAsTheWholeTextDoes) {
  const GenerateOutcome outcome = generate(generation(GetParam()));
  ASSERT_FALSE(outcome.tokens.empty());
  RunRequest request = request_of(written().text, {});
  request.schedule = ScheduleText{.kernel = GetParam()};
  const auto run = Runner().run(request);
  const auto& best = run->predictions.front();
  EXPECT_EQ(outcome.tokens.front().id, best.index);
  EXPECT_NEAR(outcome.tokens.front().logprob, std::log(best.probability), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Kernels, GenerateWith,
                         testing::Values("softmax", "sdpa", "local-window:w=8", "hedgehog", "elu", "taylor",
                                         "hydra-cosine", "linear-cosine"));

TEST(Generate, EndsWhereItIsAsked) {
  GenerateRequest request = generation();
  const GenerateOutcome free = generate(request);
  request.stop = {free.tokens[3].text};
  const GenerateOutcome stopped = generate(request);
  EXPECT_EQ(stopped.ended, "stop");
  EXPECT_LE(stopped.tokens.size(), 4U);
  EXPECT_EQ(stopped.text.find(free.tokens[3].text), std::string::npos);
  request.stop.clear();
  request.tokens = 600;
  const GenerateOutcome full = generate(request);
  EXPECT_EQ(full.ended, "positions"); // the model has 512
  EXPECT_EQ(full.prompt_tokens + static_cast<std::int64_t>(full.tokens.size()), 513);
  request.tokens = 0;
  EXPECT_TRUE(generate(request).tokens.empty());
}

// Over many seeds, of all tokens and of the two likeliest.
TEST(Generate, DrawsATokenAsOftenAsItsProbability) {
  GenerateRequest request = generation();
  request.tokens = 1;
  RunRequest whole = request_of(request.text, {});
  const auto run = Runner().run(whole);
  ASSERT_GE(run->predictions.size(), 2U);
  const auto& first = run->predictions[0];
  const auto& second = run->predictions[1];
  const auto models = make_model_store();
  constexpr int draws = 400;
  const auto share_of_first = [&](const double top_p) {
    int count = 0;
    for (int seed = 0; seed < draws; ++seed) {
      request.sampling = {.temperature = 1, .top_p = top_p, .seed = static_cast<std::uint64_t>(seed)};
      const int id = generate(request, {}, {}, models).tokens.at(0).id;
      if (top_p < 1) {
        EXPECT_TRUE(id == first.index || id == second.index);
      }
      count += id == first.index;
    }
    return static_cast<double>(count) / draws;
  };
  const auto expect_share = [&](const double share, const double expected) {
    EXPECT_NEAR(share, expected, 4 * std::sqrt(expected * (1 - expected) / draws));
  };
  expect_share(share_of_first(1), first.probability);
  const double both = first.probability + second.probability;
  expect_share(share_of_first(both - 1e-4 * second.probability), first.probability / both);
}

TEST(Generate, DrawsFromTheLikeliestTokens) {
  GenerateRequest request = generation();
  request.tokens = 40;
  request.sampling = {.temperature = 1, .top_p = 1e-6, .seed = 3};
  const GenerateOutcome least = generate(request);
  request.sampling = {};
  EXPECT_EQ(ids_of(least), ids_of(generate(request)));
  request.sampling = {.temperature = 1, .top_p = 1, .seed = 3};
  const GenerateOutcome drawn = generate(request);
  EXPECT_NE(ids_of(drawn), ids_of(least));
  EXPECT_EQ(ids_of(drawn), ids_of(generate(request)));
  request.sampling.seed = 4;
  EXPECT_NE(ids_of(drawn), ids_of(generate(request)));
  for (const Sampling bad : {Sampling{.temperature = -1}, Sampling{.top_p = 0}, Sampling{.top_p = 1.5}}) {
    request.sampling = bad;
    EXPECT_THROW(generate(request), UsageError);
  }
}

TEST(Generate, NamesTheWeightsThatAreNotFinite) {
  for (const std::uint16_t bits :
       {std::uint16_t{0x7E00}, std::uint16_t{0x7C00}}) { // NaN and infinity in half precision
    const ScratchFolder folder;
    const auto model = folder / "model";
    std::filesystem::copy(written_model(), model);
    const SafetensorsFile good = SafetensorsFile::open(written_model() / "model.safetensors");
    auto tensors = good.tensors();
    TensorView& weight = tensors.at("model.layers.1.mlp.up_proj.weight");
    std::vector<std::byte> bytes(weight.bytes.begin(), weight.bytes.end());
    std::memcpy(bytes.data(), &bits, sizeof bits);
    weight.bytes = bytes;
    write_safetensors(model / "model.safetensors", tensors);
    GenerateRequest request = generation();
    request.model_folder = model;
    EXPECT_THAT(message_of<BrokenFile>([&] { generate(request); }),
                testing::HasSubstr("layer.1.mlp.up_proj.weight\" holds NaN or infinity"));
  }
}

TEST(Generate, RefusesModelsThatWriteNothing) {
  GenerateRequest request = generation();
  request.model_folder = golden_folder() / "models" / "bert";
  EXPECT_THAT(message_of<UsageError>([&] { generate(request); }), testing::HasSubstr("writes no text"));
}

TEST(GenerationSpeed, MeasuresTimeAndState) {
  GenerationSpeedRequest request;
  request.model_folder = written_model();
  request.adapters.automatic = false;
  request.kernels = {{"softmax", {}}, {"elu", {}}};
  request.contexts = {16, 64};
  request.tokens = 4;
  request.rounds = 2;
  const GenerationSpeedOutcome outcome = measure_generation_speed(request);
  ASSERT_EQ(outcome.speeds.size(), 4U);
  for (const GenerationSpeed& speed : outcome.speeds) {
    EXPECT_GT(speed.decode_ms, 0);
    EXPECT_GT(speed.prefill_tokens_per_second, 0);
  }
  // 3 layers, 2 key heads of 8: keys and values of 20 and 68 tokens; sums do not grow.
  EXPECT_EQ(outcome.speeds[0].state_bytes, 3 * 2 * 2 * 8 * 20 * 4);
  EXPECT_EQ(outcome.speeds[1].state_bytes, 3 * 2 * 2 * 8 * 68 * 4);
  EXPECT_EQ(outcome.speeds[2].state_bytes, outcome.speeds[3].state_bytes);
  request.contexts = {600};
  EXPECT_THROW(measure_generation_speed(request), UsageError);
}

// The model has 512 positions: what is asked for has to fit, the default contexts are made to.
TEST(GenerationSpeed, DefaultContextsFitTheModel) {
  GenerationSpeedRequest request;
  request.model_folder = written_model();
  request.adapters.automatic = false;
  request.rounds = 1;
  for (const auto& [tokens, expected] :
       {std::pair{12, std::vector<std::int64_t>{128, 500}}, std::pair{480, std::vector<std::int64_t>{32}}}) {
    request.tokens = tokens;
    std::vector<std::int64_t> contexts;
    for (const GenerationSpeed& speed : measure_generation_speed(request).speeds)
      contexts.push_back(speed.context);
    EXPECT_EQ(contexts, expected) << tokens;
  }
  request.tokens = 512;
  EXPECT_THAT(message_of<UsageError>([&] { measure_generation_speed(request); }),
              testing::HasSubstr("--tokens"));
}

class PerplexityTest : public testing::Test {
protected:
  PerplexityTest() {
    scratch_.write("text.txt", written().text);
    request_.model_folder = written_model();
    request_.adapters.automatic = false;
    request_.data = scratch_.path() / "text.txt";
  }

  ScratchFolder scratch_;
  PerplexityRequest request_;
};

TEST_F(PerplexityTest, OfOneWindowIsTheMeanLoss) {
  request_.window = 512;
  const PerplexityOutcome outcome = measure_perplexity(request_);
  const at::Tensor loss = written().expected.at("loss");
  EXPECT_EQ(outcome.tokens, loss.numel());
  EXPECT_EQ(outcome.windows, 1);
  EXPECT_NEAR(outcome.nll, loss.mean().item<double>(), 1e-4 * outcome.nll);
  EXPECT_NEAR(outcome.perplexity, std::exp(outcome.nll), 1e-9 * outcome.perplexity);
}

TEST_F(PerplexityTest, WindowsScoreEachTokenOnceAtMost) {
  const std::int64_t tokens = written().expected.at("input_ids").size(1);
  request_.window = 10;
  const PerplexityOutcome apart = measure_perplexity(request_);
  EXPECT_EQ(apart.windows, (tokens + 9) / 10 - (tokens % 10 == 1 ? 1 : 0));
  EXPECT_EQ(apart.tokens, tokens - (tokens + 9) / 10);
  request_.batch = 1;
  EXPECT_NEAR(measure_perplexity(request_).nll, apart.nll, 1e-5);
  request_.stride = 5; // but for the first, each window scores its second half
  EXPECT_EQ(measure_perplexity(request_).tokens, tokens - 1);
  request_.limit = 15;
  EXPECT_EQ(measure_perplexity(request_).tokens, 14);
}

TEST_F(PerplexityTest, RefusesWhatCannotBe) {
  const auto refused = [&](const PerplexityRequest& request) {
    return message_of<UsageError>([&] { measure_perplexity(request); });
  };
  PerplexityRequest bad = request_;
  bad.window = 1;
  EXPECT_THAT(refused(bad), testing::HasSubstr("--window 1"));
  bad.window = 513;
  EXPECT_THAT(refused(bad), testing::HasSubstr("512 positions"));
  bad.window = 16;
  bad.stride = 17;
  EXPECT_THAT(refused(bad), testing::HasSubstr("--stride 17"));
  bad = request_;
  bad.model_folder = golden_folder() / "models" / "bert";
  EXPECT_THAT(refused(bad), testing::HasSubstr("predicts no next token"));
  scratch_.write("text.txt", "");
  request_.window = 16;
  EXPECT_THROW(measure_perplexity(request_), Error);
}

} // namespace
} // namespace hydrascope::test
