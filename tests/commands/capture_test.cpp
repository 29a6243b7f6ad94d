// Captures on the command line: run, figure, kl, distill and bench scaling.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

const std::string captures = (source_folder() / "tests/golden/captures").string() + "/";

class CaptureCommand : public ProgramTest {
protected:
  json answer(const std::string& arguments) const {
    const Outcome outcome = hydrascope(arguments + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(outcome.output);
  }
};

TEST_F(CaptureCommand, RunComparesSoftmaxWithTheRecordedOutput) {
  for (const char* name : {"bert", "vit", "timm-vit", "gpt2", "llama", "whisper"}) {
    const json run = answer("run " + captures + name + ".safetensors");
    EXPECT_LT(run.at("check").get<double>(), 1e-5) << name;
    ASSERT_EQ(run.at("layers").size(), 2U);
    for (const json& layer : run["layers"]) {
      EXPECT_EQ(layer.at("heads"), 4);
      EXPECT_EQ(layer.at("key_heads"), std::string(name) == "llama" ? 2 : 4);
      EXPECT_EQ(layer.at("d"), 8);
      EXPECT_LE(layer.at("check"), run["check"]);
    }
    EXPECT_EQ(run["layers"][0].at("tokens"), run.at("tokens").size());
    EXPECT_EQ(run.at("capture").at("sequence"), 0);
    EXPECT_EQ(run.at("predictions").size(), 0U);
  }
  const json cross =
      answer("run --capture " + captures + "whisper.safetensors:encoder_attn --kernel hedgehog");
  EXPECT_EQ(cross.at("layers")[1].at("tokens"), 5);
  EXPECT_EQ(cross["layers"][1].at("keys"), 12);
  EXPECT_EQ(cross["layers"][1].at("name"), "decoder.layers.1.encoder_attn");
  EXPECT_EQ(cross["layers"][0].at("kernel"), "hedgehog");
}

TEST_F(CaptureCommand, RunWritesWhatACaptureHas) {
  const Outcome outcome =
      hydrascope("run " + captures + "bert.safetensors:0:1 --kernel elu --output " + at("run.safetensors"));
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const std::string file = bytes_of(at("run.safetensors"));
  EXPECT_EQ(tensor(file, "attention.1").size(), 4U * 9 * 9);
  EXPECT_EQ(tensor(file, "entropy").size(), 2U * 4);
  EXPECT_EQ(tensor(file, "change").size(), 2U * 4 * 3);
  EXPECT_EQ(file.find("\"hidden.0\""), std::string::npos);
  expect_error("run " + captures + "bert.safetensors --output " + at("run.safetensors") + " --tensors focus",
               2, "model itself");
}

TEST_F(CaptureCommand, BadRequestsAreOneLineWithTheirStatus) {
  expect_error("run " + captures + "bert.safetensors --text hello", 2, "--capture");
  expect_error("run " + captures + "bert.safetensors --model minilm", 2, "--model");
  expect_error("run " + captures + "whisper.safetensors:nothing", 2, "decoder.layers.*.encoder_attn");
  expect_error("run " + captures + "bert.safetensors:0:2", 2, "0 to 1");
  expect_error("run missing.safetensors", 1, "missing.safetensors");
  expect_error("run " + captures + "bert.safetensors --mute 0:1", 2, "muted");
  expect_error("figure focus " + captures + "vit.safetensors -o " + at("focus.svg"), 2, "model itself");
  expect_error(
      "figure weights " + captures + "whisper.safetensors:2 --kernels cosformer -o " + at("cross.svg"), 2,
      "cross-attention");
}

TEST_F(CaptureCommand, WhatNeedsTheModelRefusesOneAndDoesNotListIt) {
  const auto lists = [this](const std::string& command) {
    return hydrascope(command + " --help").output.find("--capture ") != std::string::npos;
  };
  for (const std::string command :
       {"generate", "finetune", "evaluate", "bench interact", "bench write", "bench generate"}) {
    expect_error(fmt::format("{} --capture {}bert.safetensors", command, captures), 2,
                 "--capture: " + command + " needs the model itself; leave it out");
    EXPECT_FALSE(lists(command)) << command;
  }
  for (const std::string command : {"", "run", "figure", "kl", "distill", "bench browse"})
    EXPECT_TRUE(lists(command)) << command;
}

TEST_F(CaptureCommand, FiguresOfOneAndOfAFolder) {
  for (const char* kind :
       {"weights", "tokens", "vectors", "monotonicity", "entropy", "kl", "change", "attention"}) {
    const std::string file = at(std::string(kind) + ".svg");
    const std::string kernels = std::string(kind) == "vectors" ? "elu" : "softmax,elu";
    const std::string compared = std::string(kind) == "attention" ? "" : "--kernels " + kernels;
    const Outcome outcome = hydrascope(
        fmt::format("figure {} {}vit.safetensors --head 1 {} -o {}", kind, captures, compared, file));
    EXPECT_EQ(outcome.status, 0) << kind << ": " << outcome.errors;
    EXPECT_GT(fs::file_size(file), 1000U) << kind;
  }
  const Outcome all = hydrascope("figure weights " + captures + " --layer 0 -o " + at("{stem}.json"));
  EXPECT_EQ(all.status, 0) << all.errors;
  EXPECT_NE(all.output.find("6 written"), std::string::npos) << all.output;
  // Of cross-attention the rows are queries and the columns keys.
  ASSERT_EQ(hydrascope("figure weights " + captures + "whisper.safetensors:2 --kernels softmax --head 0 -o " +
                       at("cross.json"))
                .status,
            0);
  const json cross = json::parse(bytes_of(at("cross.json")));
  EXPECT_NE(cross.dump().find("220 ms"), std::string::npos);
}

TEST_F(CaptureCommand, WeightsOfCausalAttentionEndAtTheQuery) {
  const auto figure = [&](const std::string& what) {
    const Outcome outcome = hydrascope("figure weights " + captures + what + " -o " + at("weights.json"));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(bytes_of(at("weights.json")));
  };
  for (const char* grid : {"", ",mean"}) {
    const json causal = figure("gpt2.safetensors --kernels softmax,elu --head 0" + std::string(grid));
    EXPECT_NE(causal["subtitle"].get<std::string>().find("causal"), std::string::npos);
    for (const json& panel : causal["panels"])
      for (std::size_t row = 0; row < 8; ++row)
        for (std::size_t key = 0; key < 8; ++key)
          EXPECT_EQ(panel["values"][row][key].is_null(), key > row) << row << ' ' << key;
  }
  const json both_ways = figure("bert.safetensors --kernels softmax --head 0");
  EXPECT_EQ(both_ways["subtitle"].get<std::string>().find("causal"), std::string::npos);
  EXPECT_FALSE(both_ways["panels"][0]["values"][0][1].is_null());
}

// Of the mask, of causal attention and of cross-attention: pairs without a weight are no points.
TEST_F(CaptureCommand, MonotonicityCountsTheTokensThatHaveWeights) {
  for (const auto& [capture, pairs] :
       {std::pair{"bert.safetensors:0:1", 6 * 6}, std::pair{"bert.safetensors:0:0", 9 * 9},
        std::pair{"gpt2.safetensors", 8 * 9 / 2}, std::pair{"whisper.safetensors:encoder_attn", 5 * 12}}) {
    const Outcome outcome = hydrascope(
        fmt::format("figure monotonicity {}{} --kernels softmax -o {}", captures, capture, at("rho.json")));
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    const json figure = json::parse(bytes_of(at("rho.json")));
    EXPECT_EQ(figure["panels"][0]["title"], "softmax\nρ 1.000") << capture;
    EXPECT_TRUE(figure["subtitle"].get<std::string>().starts_with(fmt::format("{} pairs of tokens", pairs)))
        << capture << ": " << figure["subtitle"];
  }
}

TEST_F(CaptureCommand, PaddingIsNoQueryOfAMean) {
  for (const char* kind : {"attention", "rollout"}) {
    const Outcome outcome = hydrascope(
        fmt::format("figure {} {}bert.safetensors:0:1 --query all -o {}", kind, captures, at("mean.json")));
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    const json panel = json::parse(bytes_of(at("mean.json")))["panels"][0];
    EXPECT_EQ(panel["note"], "mean over the rows of 6 tokens") << kind;
    for (const std::size_t padding : {6U, 7U, 8U})
      EXPECT_EQ(panel["values"][padding].get<double>(), 0) << kind;
  }
}

TEST_F(CaptureCommand, FiguresAreDrawnAgainFromThemselves) {
  ASSERT_EQ(hydrascope("figure entropy " + captures + "bert.safetensors:0:1 -o " + at("entropy.svg")).status,
            0);
  const std::string first = bytes_of(at("entropy.svg"));
  const Outcome again = hydrascope("reproduce " + at("entropy.svg") + " -o " + at("again.svg"));
  ASSERT_EQ(again.status, 0) << again.errors;
  EXPECT_EQ(bytes_of(at("again.svg")).size(), first.size());
}

TEST_F(CaptureCommand, ScalingIsMeasuredWithItsHeads) {
  const std::string scaling = "bench scaling --kernels elu -N 16 --seconds 0.01 --threads 1 --capture ";
  const json points = answer(scaling + captures + "vit.safetensors");
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].at("H"), 4);
  EXPECT_EQ(points[0].at("d"), 8);
  EXPECT_GT(points[0].at("median_ms"), 0);
  expect_error(scaling + captures + "vit.safetensors --heads 2", 2, "--heads");
  expect_error(scaling + "missing.safetensors", 1, "missing.safetensors");
}

TEST_F(CaptureCommand, KlAndDistillTakeCapturesAsTheirData) {
  const json before = answer("kl --data " + captures + "bert.safetensors --kernels hedgehog,elu");
  ASSERT_EQ(before.size(), 2U);
  EXPECT_EQ(before[0].at("items"), 2);
  EXPECT_EQ(before[0].at("untrained"), true);
  const json trained = answer("distill --kernel hedgehog --capture " + captures + "bert.safetensors -o " +
                              at("maps.safetensors") + " --epochs 20 --patience 0");
  EXPECT_LT(trained.at("kl").get<double>(), trained.at("kl_before").get<double>());
  const json after = answer("kl --capture " + captures + "bert.safetensors --kernels hedgehog --adapter " +
                            at("maps.safetensors"));
  EXPECT_EQ(after[0].at("untrained"), false);
  EXPECT_LT(after[0].at("kl").get<double>(), before[0].at("kl").get<double>());
  expect_error("distill --kernel hedgehog -o " + at("maps.safetensors"), 2, "--data");
  expect_error("kl --data " + captures + " --kernels elu", 2, "one model");
}

} // namespace
