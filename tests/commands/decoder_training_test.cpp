// A decoder's training as a user runs it: distil, fine-tune, score answers, train from nothing, on small
// models.
#include <fmt/format.h>
#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include "engine/base/paths.h"
#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

class DecoderTraining : public ProgramTest {
protected:
  DecoderTraining() {
    setenv("XDG_CACHE_HOME", at("cache").c_str(), 1);
    std::ofstream text(at("text.txt")), table(at("answers.tsv"));
    for (int i = 0; i < 60; ++i) {
      text << "the " << (i % 3 == 0 ? "hedgehog" : "token") << " sits on a " << (i % 2 == 0 ? "line" : "head")
           << ".\n";
      table << "the token of " << i << "\ta head\n";
    }
  }

  json answer(const std::string& arguments) const {
    const Outcome outcome = hydrascope(arguments + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return outcome.status == 0 ? json::parse(outcome.output) : json();
  }

  // The most memory that the program takes, in kilobytes.
  std::int64_t peak_of(const std::string& arguments) const {
    const std::string command =
        fmt::format("exec '{}' {} >{} 2>&1", program().string(), arguments, at("output.txt"));
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    int status = -1;
    rusage usage{};
    EXPECT_EQ(wait4(child, &status, 0, &usage), child);
    EXPECT_EQ(status, 0) << bytes_of(at("output.txt"));
    return usage.ru_maxrss;
  }

  const std::string model_ =
      "--model '" + (source_folder() / "tests/golden/decoders/written").string() + "' --no-adapter ";
};

TEST_F(DecoderTraining, FromMapsToALoRAThatIsMeasured) {
  const std::string text = "--data " + at("text.txt");
  const json maps = answer("distill " + model_ + text +
                           " --kernel hedgehog --chunk 32 --epochs 2 --batch 2 -o " + at("maps.safetensors"));
  EXPECT_LT(maps.at("kl").get<double>(), maps.at("kl_before").get<double>());
  const std::string base = "--model '" + (source_folder() / "tests/golden/decoders/written").string() + "' ";
  const json tuned =
      answer("finetune " + base + "--adapter " + at("maps.safetensors") + " " + text +
             " --kernel hedgehog --lora rank=2,alpha=4 --chunk 32 --epochs 2 --batch 2 --lr 0.01 "
             "--dtype float32 -o " +
             at("lora.safetensors"));
  EXPECT_EQ(tuned.at("role"), "schedule");
  EXPECT_LT(tuned.at("perplexity").get<double>(), tuned.at("perplexity_before").get<double>());
  const json measured = answer("evaluate --perplexity " + base + "--adapter " + at("lora.safetensors") +
                               " --kernel hedgehog --window 32 " + text);
  EXPECT_LT(measured.at("perplexity").get<double>(), tuned.at("perplexity_before").get<double>());
  const json kl = answer("kl " + base + "--adapter " + at("maps.safetensors") +
                         " --kernels hedgehog --joined --lengths 32 " + text);
  EXPECT_LT(kl.at(0).at("kl").get<double>(), maps.at("kl_before").get<double>());
  EXPECT_EQ(kl.at(0).at("length"), 32);
}

// Where no adapter fits the schedule, every result says so, as text and as JSON.
TEST_F(DecoderTraining, WithoutAnAdapterTheResultIsUntrained) {
  const std::string note = "untrained: no adapter for elu in 3 of 3 layers", elu = " --kernel elu";
  const std::string table = " --data " + at("answers.tsv") + " --answer-column 2 --tokens 4 --limit 1";
  for (const std::string& command :
       {"generate " + model_ + "--text 'the token' --tokens 2",
        "evaluate --perplexity " + model_ + "--window 32 --tokens 64 --data " + at("text.txt"),
        "evaluate --rouge " + model_ + table}) {
    EXPECT_EQ(answer(command + elu).at("notes"), json::array({note})) << command;
    EXPECT_EQ(answer(command).at("notes"), json::array()) << command;
    const Outcome told = hydrascope(command + elu);
    EXPECT_EQ(told.status, 0) << told.errors;
    EXPECT_NE(told.errors.find("note: " + note), std::string::npos) << command << "\n" << told.errors;
  }
  const std::string bench =
      "bench generate " + model_ + "--kernels softmax,elu --context 8 --tokens 2 --rounds 1";
  const json speeds = answer(bench);
  EXPECT_EQ(speeds.at(0).at("untrained"), false);
  EXPECT_EQ(speeds.at(1).at("untrained"), true);
  const std::string text = hydrascope(bench).output;
  EXPECT_NE(text.find("elu ×3 (untrained)"), std::string::npos) << text;
  EXPECT_EQ(text.find("softmax ×3 (untrained)"), std::string::npos) << text;
}

// Of 900 windows together the logits take 73 MB, of one 81 kB.
TEST_F(DecoderTraining, PerplexityRunsAsManyWindowsTogetherAsAreAskedFor) {
  {
    std::ofstream text(at("long.txt"));
    for (int i = 0; i < 6000; ++i) text << "the token of line " << i << " sits on a head.\n";
  }
  const std::string measured =
      "evaluate --perplexity " + model_ + "--window 64 --tokens 57600 --data " + at("long.txt");
  EXPECT_EQ(answer(measured).at("windows"), 900);
  EXPECT_GT(peak_of(measured + " --batch 900"), peak_of(measured + " --batch 1") + (50 << 10));
  expect_error(measured + " --limit 2", 2, "--limit");
}

TEST_F(DecoderTraining, ThePerplexityOfOneWindowHasNoSpread) {
  const std::string measure =
      "evaluate --perplexity " + model_ + "--window 32 --data " + at("text.txt") + " --tokens ";
  const std::string one = hydrascope(measure + "20").output, two = hydrascope(measure + "64").output;
  EXPECT_NE(one.find("nats a token (one window)"), std::string::npos) << one;
  EXPECT_EQ(one.find("nan"), std::string::npos) << one;
  EXPECT_NE(two.find(" over windows"), std::string::npos) << two;
  EXPECT_TRUE(answer(measure + "20").at("standard_error").is_null());
}

TEST_F(DecoderTraining, AnswersAreLearntAndScored) {
  const std::string table =
      "--data " + at("answers.tsv") + " --answer-column 2 --template 'Name it:\\n{}\\n:' ";
  const std::string base = "--model '" + (source_folder() / "tests/golden/decoders/written").string() + "' ";
  answer("finetune " + base + "--no-adapter " + table +
         "--train-layers 0-2,embeddings --epochs 6 --batch 4 --lr 0.01 --dtype float32 -o " +
         at("answers.safetensors"));
  const json scores = answer("evaluate --rouge " + base + "--adapter " + at("answers.safetensors") + " " +
                             table + "--tokens 20 --limit 4");
  EXPECT_EQ(scores.at("items"), 4);
  for (const char* name : {"rouge1", "rouge2", "rougeL"})
    EXPECT_GT(scores.at(name).get<double>(), 0.9) << name;
}

TEST_F(DecoderTraining, AModelFromNothingWritesText) {
  const json trained = answer(
      "train --preset gpt2-wt103 --tokenizer bytes --kernel elu --layers 1 --width 32 --heads 2 --chunk 32 "
      "--epochs 4 --batch 4 --lr 0.01 --dtype float32 --data " +
      at("text.txt") + " -o " + at("model"));
  EXPECT_LT(trained.at("perplexity").get<double>(), 20);
  EXPECT_EQ(trained.at("accuracy"), nullptr);
  const std::string weights = bytes_of(at("model/model.safetensors"));
  const std::string metadata = weights.substr(0, weights.find("\"dtype\""));
  EXPECT_NE(metadata.find("\"data_hash\":\"" + hydrascope::sha256_of_file(at("text.txt"))), std::string::npos)
      << metadata;
  const json written =
      answer("generate --model " + at("model") + " --kernel elu --text 'the token' --tokens 8");
  EXPECT_EQ(written.at("tokens").size(), 8U);
  const Outcome again = hydrascope("train --preset gpt2-wt103 --tokenizer bytes --data " + at("text.txt") +
                                   " -o " + at("model"));
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.errors.find("exists already"), std::string::npos) << again.errors;
}

TEST_F(DecoderTraining, ListOpsIsTested) {
  const json trained = answer(
      "train --preset lra-listops --layers 1 --width 16 --heads 2 --chunk 20 --sequences 64,16,16 --epochs 1 "
      "--batch 8 -o " +
      at("model"));
  EXPECT_GE(trained.at("test_accuracy").get<double>(), 0);
  EXPECT_EQ(hydrascope("run --model " + at("model") + " --text '[MAX 1 2 ]'").status, 0);
}

} // namespace
