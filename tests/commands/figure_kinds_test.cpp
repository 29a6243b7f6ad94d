// Every kind of figure: it draws, the same bytes each time, and can be drawn again from its own metadata.
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

const std::string sentence = " --text 'the hedgehog eats a porcupine' ";

struct Kind {
  const char* name;
  std::string arguments;
  std::size_t panels;
};

void PrintTo(const Kind& kind, std::ostream* stream) { *stream << kind.name; }

class FigureKinds : public ProgramTest, public testing::WithParamInterface<Kind> {
protected:
  std::string arguments() const {
    std::string text = GetParam().arguments;
    if (const auto data = text.find("DATA"); data != std::string::npos) text.replace(data, 4, at("data"));
    return "figure " + std::string(GetParam().name) + text;
  }
  void write(const std::string& text) const { std::ofstream(at("data")) << text; }
  void SetUp() override {
    const std::string kind = GetParam().name;
    if (kind == "loss") write("step,loss\n1,2.5\n2,1.25\n");
    if (kind == "recall") write(R"([{"kernel":"elu","accuracy":0.17,"entropy":3.0}])");
    if (kind == "roofline")
      write(R"([{"kernel":"elu","N":64,"flops_per_second":2e9,"bytes_per_second":1e9,)"
            R"("share_of_bandwidth":0.1,"share_of_flops":0.05}])");
    if (kind == "table" || kind == "kl") write("a hedgehog\nthe porcupine eats\n");
  }
};

TEST_P(FigureKinds, DrawsTheSameEachTimeAndAgain) {
  for (const std::string ending : {".json", ".svg", ".pdf", ".png"}) {
    const std::string first = at("first" + ending), again = at("again" + ending);
    const Outcome outcome = hydrascope(arguments() + " -o " + first);
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    if (ending == ".json") {
      const auto figure = json::parse(bytes_of(first));
      EXPECT_EQ(figure["panels"].size(), GetParam().panels);
      EXPECT_FALSE(figure["title"].get<std::string>().empty());
      EXPECT_EQ(figure["provenance"]["program"], "hydrascope");
    }
    const Outcome reproduced = hydrascope(fmt::format("reproduce {} -o {}", first, again));
    ASSERT_EQ(reproduced.status, 0) << reproduced.errors;
    EXPECT_EQ(reproduced.output, again + ": identical\n");
    EXPECT_EQ(bytes_of(first), bytes_of(again)) << ending;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, FigureKinds,
    testing::Values(Kind{"focus", sentence + "--kernels softmax,hedgehog", 2},
                    Kind{"weights", sentence + "--kernels softmax,elu --layer 0,5 --head 0,mean", 8},
                    Kind{"compare", sentence + "--replace back:2=elu", 3},
                    Kind{"tokens", sentence + "--kernels softmax,elu --query 2", 2},
                    Kind{"vectors", sentence + "--kernels hedgehog --query 2 --key 4", 6},
                    Kind{"entropy", sentence, 1}, Kind{"kl", " --data DATA --kernels elu,hedgehog", 2},
                    Kind{"monotonicity", sentence + "--kernels softmax,taylor --head 3", 2},
                    Kind{"layers", sentence, 6}, Kind{"attention", sentence, 1}, Kind{"rollout", sentence, 1},
                    Kind{"roofline", " --data DATA", 1}, Kind{"loss", " --data DATA", 1},
                    Kind{"recall", " --data DATA", 1},
                    Kind{"heads",
                         " --model minilm --counts 6,12 --data " +
                             (source_folder() / "assets/sentences.txt").string() + " --limit 3",
                         1},
                    Kind{"strategies", sentence + "--counts 0,3", 1},
                    Kind{"table", " --data DATA --kernels softmax,elu", 1}),
    [](const auto& kind) { return std::string(kind.param.name); });

class FigureNumbers : public ProgramTest {
protected:
  json drawn(const std::string& arguments) const {
    const Outcome outcome = hydrascope("figure " + arguments + " -o " + at("f.json"));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(bytes_of(folder_ / "f.json"));
  }
};

TEST_F(FigureNumbers, MeasuredTimesAreDrawnToo) {
  EXPECT_EQ(drawn("timing" + sentence)["panels"][0]["values"].size(), 6u);
  const auto lines = drawn("scaling --kernels elu,hydra-cosine --lengths 16,32")["panels"][0]["lines"];
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["x"], json({16.0, 32.0}));
  for (const auto& time : lines[1]["y"]) EXPECT_GT(time.get<double>(), 0);
}

TEST_F(FigureNumbers, TableIsThatOfKl) {
  std::ofstream(at("texts")) << "a hedgehog\nthe porcupine eats what is left\n";
  const std::string what = " --data " + at("texts") + " --kernels elu,hedgehog,hydra-cosine";
  const auto table = drawn("table" + what)["panels"][0];
  const auto list = json::parse(hydrascope("kl --json" + what).output);
  ASSERT_EQ(table["rows"].size(), list.size());
  for (std::size_t row = 0; row < list.size(); ++row) {
    EXPECT_EQ(table["values"][row][0], list[row]["kl"]);
    EXPECT_EQ(table["values"][row][1], list[row]["entropy"]);
    EXPECT_EQ(table["values"][row][4], list[row]["change"]["cosine"]);
  }
  EXPECT_TRUE(table["values"][2][0].is_null()) << "signed weights have no KL";
}

TEST_F(FigureNumbers, TablesAreThoseOfRun) {
  const std::string what = sentence + "--kernel elu ";
  for (const std::string kind : {"entropy", "kl"}) {
    const auto rows = drawn(kind + what)["panels"][0]["values"];
    ASSERT_EQ(
        hydrascope(fmt::format("run{}--tensors {} --output {}", what, kind, at("run.safetensors"))).status,
        0);
    const auto values = tensor(bytes_of(folder_ / "run.safetensors"), kind);
    ASSERT_EQ(values.size(), rows.size() * rows[0].size());
    std::size_t index = 0;
    for (const auto& row : rows)
      for (const auto& cell : row) EXPECT_EQ(cell.get<float>(), values[index++]) << kind;
  }
}

TEST_F(FigureNumbers, ThePicturesHeadsAreUnchangedAtTheModelsOwnNumber) {
  const auto panel = drawn("heads --kernels softmax --model minilm --counts 6,12 --limit 3 --data " +
                           (source_folder() / "assets/sentences.txt").string())["panels"][0];
  EXPECT_NEAR(panel["lines"][0]["y"][1].get<double>(), 1, 1e-5);
  EXPECT_LT(panel["lines"][0]["y"][0].get<double>(), 0.99);
}

TEST_F(FigureNumbers, NoLayerReplacedIsSoftmaxItself) {
  const auto panel = drawn("strategies" + sentence + "--counts 0,6")["panels"][0];
  ASSERT_EQ(panel["lines"].size(), 3u);
  for (const auto& line : panel["lines"]) {
    EXPECT_NEAR(line["y"][0].get<double>(), 1, 1e-6);
    EXPECT_LT(line["y"][1].get<double>(), 0.99);
    EXPECT_EQ(line["y"][1], panel["lines"][0]["y"][1]) << "all layers are all layers, whatever the order";
  }
}

TEST_F(FigureNumbers, TheScatterCountsEveryPairOnce) {
  const auto figure = drawn("monotonicity --kernels softmax --head 0" + sentence);
  double pairs = 0;
  for (const auto& row : figure["panels"][0]["values"])
    for (const auto& cell : row)
      if (!cell.is_null()) pairs += cell.get<double>();
  const double tokens = std::sqrt(pairs);
  EXPECT_EQ(tokens, std::floor(tokens));
  EXPECT_GT(tokens, 5);
}

TEST_F(FigureNumbers, PresetsGiveTheColumnsWidth) {
  for (const auto& [preset, width] : {std::pair{"single", "85mm"}, std::pair{"double", "170mm"}}) {
    ASSERT_EQ(hydrascope("figure layers" + sentence + "--preset " + preset + " -o " + at("f.svg")).status, 0);
    EXPECT_NE(bytes_of(folder_ / "f.svg").find("width=\"" + std::string(width) + "\""), std::string::npos);
  }
  expect_error("figure layers" + sentence + "--preset broad -o " + at("f.svg"), 2, "single, double or slide");
}

TEST_F(FigureNumbers, WhatCannotBeDrawnIsSaid) {
  expect_error("figure focus" + sentence + "-o " + at("f.tex"), 2, "only a table");
  expect_error("figure loss -o " + at("f.svg"), 2, "--data");
  std::ofstream(at("not.csv")) << "a,b\n";
  expect_error("figure loss --data " + at("not.csv") + " -o " + at("f.svg"), 1, "step,loss");
  std::ofstream(at("broken.csv")) << "step,loss\n1,2\nx\n";
  expect_error("figure loss --data " + at("broken.csv") + " -o " + at("f.svg"), 1, "line 3");
  expect_error("figure compare" + sentence + "-o " + at("f.svg"), 2, "--against");
  expect_error("figure strategies --measure accuracy -o " + at("f.svg"), 2, "sub-folder");
  expect_error("figure heads --kernels elu --counts 6 -o " + at("f.svg"), 2, "number of heads");
  expect_error("figure -o " + at("f.svg"), 2, "no kind");
  expect_error("figure vectors" + sentence + "--query all -o " + at("f.svg"), 2, "--query");
}

class Reproduce : public ProgramTest {};

TEST_F(Reproduce, SaysWhatHasChanged) {
  const std::string copy = at("picture.png");
  fs::copy_file(picture, copy);
  ASSERT_EQ(hydrascope("figure predictions --image " + copy + " -o " + at("f.csv")).status, 0);
  fs::copy_file(deps_folder() / "examples/coffee.png", copy, fs::copy_options::overwrite_existing);
  const auto outcome = json::parse(hydrascope("reproduce --json " + at("f.csv")).output);
  EXPECT_EQ(outcome["identical"], false);
  EXPECT_EQ(outcome["differs"], json({"input"}));
  EXPECT_TRUE(fs::exists(at("f-reproduced.csv")));
}

TEST_F(Reproduce, RefusesWhatItCannot) {
  expect_error("reproduce " + picture, 1, "does not say where it came from");
  expect_error("reproduce " + at("missing.svg"), 1, "missing.svg");
  ASSERT_EQ(hydrascope("figure layers" + sentence + "-o " + at("f.svg")).status, 0);
  expect_error("reproduce " + at("f.svg") + " -o " + at("f.svg"), 2, "itself");
}

} // namespace
