// Tables of prompts and answers, and ROUGE of what a decoder answers.
#include "engine/run/prompts.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/measure/answers.h"
#include "engine/run/generate.h"
#include "tests/engine/models/golden.h"

namespace hydrascope::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

std::filesystem::path decoder() { return golden_folder() / "decoders" / "written"; }

TEST(Prompts, AreReadFromATable) {
  const ScratchFolder folder;
  folder.write("table.tsv",
               "id\tdialog\tsummary\n1\tA: hi\\nB: \\\\o\tTwo greet.\n\n2\t \tnothing\n3\tmore\t\n");
  PromptTable table{.file = folder.path() / "table.tsv", .prompt = 2, .answer = 3, .header = true};
  const auto prompts = read_prompts(table);
  ASSERT_THAT(prompts, SizeIs(2));
  EXPECT_EQ(prompts[0].prompt, "A: hi\nB: \\o");
  EXPECT_EQ(prompts[0].answer, "Two greet.");
  EXPECT_EQ(prompts[1].answer, "");
  table.limit = 1;
  EXPECT_THAT(read_prompts(table), SizeIs(1));

  const auto refused = [&](const char* part, const auto& change) {
    PromptTable other = table;
    change(other);
    EXPECT_THAT([&] { read_prompts(other); }, ThrowsMessage<UsageError>(HasSubstr(part)));
  };
  refused("--answer-column", [](PromptTable& other) { other.answer = 2; });
  refused("--column", [](PromptTable& other) { other.prompt = 0; });
  refused("--template", [](PromptTable& other) { other.layout = "{} and {}"; });
  table.answer = 9;
  EXPECT_THROW(read_prompts(table), Error);
  table.file = folder.path() / "none.tsv";
  EXPECT_THROW(read_prompts(table), Error);
}

TEST(Prompts, AreShortenedWithinTheirTemplate) {
  const auto model = load_model(decoder());
  const std::string layout = R"(Say\t{}\nnow:)",
                    prompt = "the hedgehog meets a tokën in the line of the head";
  const FittedPrompt whole = fitted_prompt(*model, layout, prompt, 1000);
  EXPECT_EQ(whole.text, "Say\t" + prompt + "\nnow:");
  EXPECT_FALSE(whole.shortened);
  EXPECT_EQ(whole.ids, model->text_ids(whole.text));
  const auto all = std::ssize(whole.ids);
  for (const std::int64_t room : {all, all - 1, all - 9, all - 20}) {
    const FittedPrompt fitted = fitted_prompt(*model, layout, prompt, room);
    EXPECT_LE(std::ssize(fitted.ids), room);
    EXPECT_EQ(fitted.shortened, room < all);
    EXPECT_TRUE(fitted.text.starts_with("Say\tthe") && fitted.text.ends_with("\nnow:")) << fitted.text;
    const std::string kept = fitted.text.substr(4, fitted.text.size() - 9);
    EXPECT_TRUE(prompt.starts_with(kept));
  }
  EXPECT_THROW(fitted_prompt(*model, layout, prompt, 3), UsageError);
}

TEST(Prompts, AnAnswerFollowsABlank) {
  EXPECT_EQ(answer_after("Summary:", "two words"), " two words");
  EXPECT_EQ(answer_after("Summary:\n", "two words"), "two words");
  EXPECT_EQ(answer_after("Summary:", " two words"), " two words");
  EXPECT_EQ(answer_after("Summary:", ""), "");
}

TEST(Prompts, TheEndOfATextIsAToken) {
  const auto model = load_model(decoder());
  EXPECT_EQ(end_token(*model), 1);
  EXPECT_TRUE(model->ends_text(1));
}

TEST(Answers, AreScoredByRouge) {
  const ScratchFolder folder;
  folder.write("table.tsv", "the line\tthe head\na hedgehog of the token\the meets it\n");
  AnswersRequest request;
  request.model_folder = decoder();
  request.adapters.automatic = false;
  request.data = folder.path() / "table.tsv";
  request.prompt_template = R"({}\n:)";
  request.tokens = 12;
  const AnswersOutcome outcome = measure_answers(request);
  ASSERT_EQ(outcome.items, 2);
  ASSERT_THAT(outcome.answers, SizeIs(2));
  GenerateRequest one;
  one.model_folder = request.model_folder;
  one.adapters = request.adapters;
  one.text = "a hedgehog of the token\n:";
  one.tokens = 12;
  EXPECT_EQ(outcome.answers[1], generate(one).text);

  // With what it answers as the reference, the scores are 1 where there are words.
  std::string table;
  for (std::size_t i = 0; i < 2; ++i) {
    std::string answer = outcome.answers[i];
    for (std::size_t at = 0; (at = answer.find('\n', at)) != std::string::npos;) answer[at] = ' ';
    for (std::size_t at = 0; (at = answer.find('\t', at)) != std::string::npos;) answer[at] = ' ';
    table += (i == 0 ? "the line\t" : "a hedgehog of the token\t") + answer + " .\n";
  }
  folder.write("table.tsv", table);
  const AnswersOutcome same = measure_answers(request);
  EXPECT_EQ(same.answers, outcome.answers);
  double with_words = 0, with_pairs = 0;
  for (const std::string& answer : outcome.answers) {
    with_words += rouge_words(answer).empty() ? 0 : 0.5;
    with_pairs += rouge_words(answer).size() < 2 ? 0 : 0.5;
  }
  EXPECT_GT(with_words, 0);
  EXPECT_DOUBLE_EQ(same.mean.rouge1, with_words);
  EXPECT_DOUBLE_EQ(same.mean.rougeL, with_words);
  EXPECT_DOUBLE_EQ(same.mean.rouge2, with_pairs);

  request.tokens = 512;
  EXPECT_THROW(measure_answers(request), UsageError);
  request.model_folder = golden_folder() / "models" / "bert";
  EXPECT_THROW(measure_answers(request), UsageError);
}

// Also where its files are written anew meanwhile, as by a script that trains it.
TEST(Answers, AreAllOfTheVersionThatWasLoaded) {
  const ScratchFolder folder;
  folder.write("table.tsv", "the line\tthe head\na hedgehog of the token\tthe end\na head\tthe line\n");
  const std::filesystem::path model = folder / "model";
  std::filesystem::copy(decoder(), model);
  int loads = 0;
  const auto models = make_model_store({[&](const std::filesystem::path& from) {
                                          ++loads;
                                          return load_model(from);
                                        },
                                        [] { return std::vector<AdapterInfo>(); }});
  AnswersRequest request;
  request.model_folder = model;
  request.data = folder / "table.tsv";
  request.tokens = 4;
  const auto rewrite = [&](std::int64_t, std::int64_t) {
    const std::filesystem::path file = model / "config.json";
    std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) + std::chrono::seconds(1));
  };
  EXPECT_EQ(measure_answers(request, rewrite, {}, models).items, 3);
  EXPECT_EQ(loads, 1);
}

} // namespace
} // namespace hydrascope::test
