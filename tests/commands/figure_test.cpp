// `hydrascope figure` as a user runs it: files, their numbers against those of `run`, and its errors.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

class FigureCommand : public ProgramTest {
protected:
  // A figure of the picture, which must succeed.
  std::string draw(const std::string& arguments, const std::string& name) const {
    const Outcome outcome = hydrascope("figure " + arguments + " -o " + at(name));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return bytes_of(folder_ / name);
  }
};

TEST_F(FigureCommand, FocusIsTheSameFileUnderAnyName) {
  for (const std::string ending : {".svg", ".pdf", ".png"}) {
    const std::string arguments = "focus --image " + picture + " --replace back:2=hydra-cosine";
    const std::string first = draw(arguments, "a" + ending);
    EXPECT_EQ(first, draw(arguments, "b" + ending)) << ending;
    EXPECT_GT(first.size(), 5000u);
  }
}

TEST_F(FigureCommand, OverlayAndThemeChangeThePictureAndNotTheNumbers) {
  const std::string arguments = "focus --layer 10 --image " + picture;
  const std::string usual = draw(arguments, "a.svg");
  EXPECT_NE(draw(arguments + " --overlay dimmed", "b.svg"), usual);
  EXPECT_NE(draw(arguments + " --theme dark", "c.svg"), usual);
  const auto values = [&](const std::string& more) {
    return json::parse(draw(arguments + more, "f.json"))["panels"].back()["values"];
  };
  EXPECT_EQ(values(" --overlay dimmed --theme dark"), values(""));
  const Outcome refused = hydrascope("figure " + arguments + " --overlay bright -o " + at("d.svg"));
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.errors.find("use value or dimmed"), std::string::npos) << refused.errors;
}

TEST_F(FigureCommand, JsonIsNoPartOfTheFigure) {
  const std::string arguments = "predictions --image " + picture;
  const std::string figure = draw(arguments, "a.csv");
  EXPECT_EQ(draw(arguments + " --json", "b.csv"), figure);
  const json told = json::parse(hydrascope("reproduce --json " + at("b.csv")).output);
  EXPECT_EQ(told["identical"], true);
  // Figures of before named it in their command.
  std::string older = figure;
  const std::string command = "\"hydrascope figure ";
  const auto found = older.find(command);
  ASSERT_NE(found, std::string::npos);
  std::ofstream(at("older.csv")) << older.insert(found + command.size(), "--json ");
  EXPECT_EQ(json::parse(hydrascope("reproduce --json " + at("older.csv")).output)["differs"], json::array());
}

TEST_F(FigureCommand, AViewIsDrawnAgainWithItsLook) {
  const fs::path view = source_folder() / "tests/golden/compatibility/figures/2026-11-27-view.csv";
  const Outcome exported =
      hydrascope("figure --session '" + view.string() + "' --theme dark --preset single -o " + at("panels"));
  ASSERT_EQ(exported.status, 0) << exported.errors;
  const Outcome outcome = hydrascope("reproduce " + at("panels/focus.svg") + " -o " + at("again.svg"));
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const std::string svg = bytes_of(folder_ / "panels/focus.svg"), again = bytes_of(folder_ / "again.svg");
  const auto part = [](const std::string& text, const std::string& from, const std::string& to) {
    const auto start = text.find(from);
    return start == std::string::npos ? "" : text.substr(start, text.find(to, start) - start);
  };
  EXPECT_EQ(part(again, "width=", " "), "width=\"85mm\"");
  EXPECT_EQ(part(again, "<rect", "\n"), part(svg, "<rect", "\n")); // the ground
  EXPECT_EQ(part(again, "&quot;style&quot;", "}"), part(svg, "&quot;style&quot;", "}"));
  EXPECT_NE(part(again, "&quot;style&quot;", "}"), "");
}

TEST_F(FigureCommand, AFileNameNeedNotBeUtf8) {
  fs::copy_file(picture, folder_ / "caf\xe9.png");
  const std::string arguments = "predictions --image '" + at("caf\xe9.png") + "'";
  EXPECT_TRUE(draw(arguments, "f.pdf").starts_with("%PDF-"));
  const std::string svg = draw(arguments, "f.svg");
  EXPECT_NE(svg.find("caf·.png"), std::string::npos);
  EXPECT_EQ(svg.find('\xe9'), std::string::npos);
}

TEST_F(FigureCommand, SvgNamesModelLayerKernelAndPicture) {
  const std::string svg = draw("focus --image " + picture + " --kernels softmax,hydra-cosine", "f.svg");
  for (const char* const text :
       {">chelsea.png</text>", ">softmax</text>", ">hydra-cosine</text>", "layer 11"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

TEST_F(FigureCommand, AComparisonNamesTheQueryAndTheOtherLayers) {
  const auto subtitle = [&](const std::string& arguments) {
    return json::parse(draw(arguments + " --image " + picture, "f.json"))["subtitle"].get<std::string>();
  };
  const std::string kernels = "focus --kernels softmax,hydra-cosine --layer 11";
  EXPECT_THAT(subtitle(kernels), testing::EndsWith("kernels compared in layer 11"));
  EXPECT_THAT(subtitle(kernels + " --query 20"), testing::EndsWith("; query: row 2, column 8"));
  EXPECT_THAT(subtitle(kernels + " --replace back:2=hydra-cosine"),
              testing::EndsWith("; in the other layers softmax ×10, hydra-cosine ×1"));
  const std::string compare = "compare --replace back:1=hydra-cosine";
  EXPECT_THAT(subtitle(compare), testing::Not(testing::HasSubstr("quer")));
  EXPECT_THAT(subtitle(compare + " --query all"), testing::EndsWith("; all queries"));
}

TEST_F(FigureCommand, ProvenanceTellsTheRunWithoutTheOutputsName) {
  const auto figure = json::parse(draw("focus --seed 5 --image " + picture, "secret-name.json"));
  const auto& provenance = figure["provenance"];
  EXPECT_EQ(provenance["program"], "hydrascope");
  EXPECT_EQ(provenance["seed"], 5);
  EXPECT_EQ(provenance["model"]["hash"].get<std::string>().size(), 64u);
  EXPECT_EQ(provenance["input"]["hash"].get<std::string>().size(), 64u);
  EXPECT_EQ(provenance["dtype"], "float32");
  EXPECT_NE(provenance["command"].get<std::string>().find("figure focus"), std::string::npos);
  EXPECT_EQ(provenance["command"].get<std::string>().find("secret-name"), std::string::npos);
}

TEST_F(FigureCommand, FocusNumbersAreThoseOfRun) {
  const auto figure =
      json::parse(draw("focus --signed --normalise none --layer 11 --image " + picture, "f.json"));
  ASSERT_EQ(
      hydrascope("run --image " + picture + " --tensors focus --layer 11 --output " + at("run.safetensors"))
          .status,
      0);
  const auto focus = tensor(bytes_of(folder_ / "run.safetensors"), "focus.11");
  const auto& map = figure["panels"].back()["values"];
  std::size_t patches = 0;
  for (const auto& row : map) patches += row.size();
  ASSERT_LT(patches, focus.size());
  std::size_t token = focus.size() - patches;
  for (const auto& row : map) {
    for (const auto& value : row) EXPECT_EQ(value.get<float>(), focus[token++]);
  }
}

TEST_F(FigureCommand, WeightsNumbersAreThoseOfRun) {
  const std::string sentence = " --text 'the hedgehog eats a porcupine' ";
  const auto figure = json::parse(draw("weights --layer 2 --head 3 --kernels softmax" + sentence, "w.json"));
  ASSERT_EQ(hydrascope("run" + sentence + "--tensors attention --output " + at("run.safetensors")).status, 0);
  const auto attention = tensor(bytes_of(folder_ / "run.safetensors"), "attention.2");
  const auto& map = figure["panels"][0]["values"];
  const std::size_t tokens = map.size();
  std::size_t index = 3 * tokens * tokens;
  for (const auto& row : map) {
    double sum = 0;
    for (const auto& value : row) {
      EXPECT_EQ(value.get<float>(), attention.at(index++));
      sum += value.get<double>();
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST_F(FigureCommand, ValueWeightedWeightsAreThoseOfRun) {
  const std::string sentence = " --text 'the hedgehog eats a porcupine' --value-weighted ";
  const auto figure = json::parse(draw("weights --layer 2 --head 3 --kernels softmax" + sentence, "w.json"));
  ASSERT_EQ(hydrascope("run" + sentence + "--tensors attention --output " + at("run.safetensors")).status, 0);
  const auto attention = tensor(bytes_of(folder_ / "run.safetensors"), "attention.2");
  const auto& map = figure["panels"][0]["values"];
  std::size_t index = 3 * map.size() * map.size();
  double sum = 0;
  for (const auto& row : map)
    for (const auto& value : row) {
      EXPECT_EQ(value.get<float>(), attention.at(index++));
      sum += value.get<double>();
    }
  EXPECT_GT(std::abs(sum / static_cast<double>(map.size()) - 1), 0.01); // no distributions any more
}

TEST_F(FigureCommand, PositiveMapsReachExactlyOne) {
  const auto figure = json::parse(draw("focus --image " + picture, "f.json"));
  float largest = 0;
  for (const auto& row : figure["panels"].back()["values"]) {
    for (const auto& value : row) {
      EXPECT_GE(value.get<float>(), 0);
      largest = std::max(largest, value.get<float>());
    }
  }
  EXPECT_FLOAT_EQ(largest, 1);
}

TEST_F(FigureCommand, SentencesAreShadedWordByWord) {
  const auto figure = json::parse(draw("focus --text 'a hedgehog'", "t.json"));
  const auto tokens = figure["panels"][0]["tokens"].get<std::vector<std::string>>();
  ASSERT_GE(tokens.size(), 4u);
  EXPECT_EQ(tokens.front(), "[CLS]");
  EXPECT_EQ(tokens.back(), "[SEP]");
  EXPECT_EQ(figure["panels"][0]["values"].size(), tokens.size());
}

TEST_F(FigureCommand, TextFromRightToLeftIsForSvg) {
  const std::string arguments = "figure tokens --text 'a שלום' --kernels softmax -o ";
  EXPECT_THAT(hydrascope(arguments + at("f.png")).errors, testing::HasSubstr("use .svg"));
  EXPECT_THAT(hydrascope(arguments + at("f.svg")).errors, testing::Not(testing::HasSubstr(".svg")));
  std::ofstream(at("texts.txt")) << "a cat\na שלום\n";
  const std::string many = "figure tokens --texts " + at("texts.txt") + " --kernels softmax -o ";
  EXPECT_THAT(hydrascope(many + at("f-{line}.PNG")).errors, testing::HasSubstr("use .svg"));
  // A pipe can be read once, and what is read is what is drawn.
  const int status = std::system(
      fmt::format("cat '{}' | '{}' figure tokens --texts /dev/stdin --kernels softmax "
                  "-o '{}' >'{}' 2>'{}'",
                  at("texts.txt"), program().string(), at("p-{line}.png"), at("output.txt"), at("errors.txt"))
          .c_str());
  EXPECT_EQ(status, 0);
  EXPECT_THAT(bytes_of(at("errors.txt")), testing::HasSubstr("use .svg"));
  EXPECT_TRUE(fs::exists(folder_ / "p-0002.png"));
}

TEST_F(FigureCommand, KernelsWithoutTheHeadAreLeftOut) {
  const auto figure = json::parse(
      draw("tokens --text 'a hedgehog' --head 5 --kernels softmax,linear-cosine:heads=1", "t.json"));
  ASSERT_EQ(figure["panels"].size(), 1u);
  EXPECT_EQ(figure["panels"][0]["title"], "softmax");
  EXPECT_NE(figure["subtitle"].get<std::string>().find("linear-cosine:heads=1 has no head 5"),
            std::string::npos)
      << figure["subtitle"];
}

// In a grid a kernel without the head has an empty place; without any that has it there is no grid.
TEST_F(FigureCommand, AHeadThatNoKernelHasIsNoRowOfAGrid) {
  const std::string grid = "weights --text 'a hedgehog' --layer 0,1 --kernels ";
  const std::string output = " -o " + at("x.json");
  expect_error("figure " + grid + "softmax,elu --head 99" + output, 2,
               "none of the kernels has head 99; use 0 to 11");
  expect_error("figure " + grid + "softmax --head 0,99" + output, 2, "none of the kernels has head 99");
  expect_error("figure " + grid + "linear-cosine:heads=2 --head 5" + output, 2, "use 0 to 1");
  EXPECT_FALSE(fs::exists(folder_ / "x.json"));
  const auto panels = [&](const std::string& more) {
    return json::parse(draw(grid + more, "w.json"))["panels"];
  };
  const json places = panels("softmax,linear-cosine:heads=2 --head 5");
  ASSERT_EQ(places.size(), 4U);
  EXPECT_EQ(places[1]["note"], "has no head 5");
  EXPECT_FALSE(places[0]["values"].empty());
  EXPECT_EQ(panels("linear-cosine:heads=2 --head all").size(), 4U) << "two layers of two heads";
}

TEST_F(FigureCommand, AllLayersGiveOnePanelEach) {
  const auto figure = json::parse(draw("focus --layer all --image " + picture, "all.json"));
  EXPECT_EQ(figure["panels"].size(), 12u);
}

TEST_F(FigureCommand, ErrorsAreOneLineAndLeaveNothingBehind) {
  const std::string good = "figure focus --image " + picture;
  expect_error(good + " -o " + at("x.gif"), 2, ".svg");
  expect_error(good + " -o " + at("missing/x.png"), 1, "missing");
  expect_error(good + " --kernels sotfmax -o " + at("x.png"), 2, "softmax");
  expect_error(good + " --layer 99 -o " + at("x.png"), 2, "--layer");
  expect_error(good + " --device cuda:99 -o " + at("x.png"), 1, "--device cuda:99");
  expect_error("figure focus -o " + at("x.png"), 2, "--image");
  expect_error("figure focus --image " + at("none.png") + " -o " + at("x.png"), 1, "none.png");
  for (const char* kind : {"weights", "attention", "tokens", "rollout"})
    expect_error("figure " + std::string(kind) + " --head 99 --image " + picture + " -o " + at("x.png"), 2,
                 "--head");
  EXPECT_FALSE(fs::exists(folder_ / "x.png"));
  EXPECT_FALSE(fs::exists(folder_ / "x.gif"));
}

} // namespace
