// `figure strategies` and `figure heads` where some points run on trained layers and some do not.
#include <map>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;
using testing::ElementsAre;

const std::string tail = "vit-small-tiny-imagenet", back_two = tail + "-hydra-cosine-back2-long",
                  back_four = tail + "-hydra-cosine-back4";

// Bundled adapters convert the last two and the last four layers of vit-small.
class FigureStudies : public ProgramTest {
protected:
  json drawn(const std::string& arguments) const {
    const Outcome outcome = hydrascope("figure " + arguments + " --image " + picture + " -o " + at("f.json"));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(bytes_of(folder_ / "f.json"));
  }
  static std::vector<std::string> names(const json& figure) {
    std::vector<std::string> all;
    for (const json& line : figure["panels"][0]["lines"]) all.push_back(line["name"]);
    return all;
  }
  static json line(const json& figure, const std::string& name) {
    for (const json& line : figure["panels"][0]["lines"])
      if (line["name"] == name) return line;
    ADD_FAILURE() << "there is no line " << name;
    return {{"x", json::array()}, {"y", json::array()}};
  }
  static json point(const json& figure, const std::string& line, const double x) {
    for (const json& point : figure["provenance"]["points"])
      if (point["line"] == line && point["x"] == x) return point;
    ADD_FAILURE() << "there is no point " << x << " of " << line;
    return {};
  }
};

TEST_F(FigureStudies, TrainedPointsAreALineOfTheirOwn) {
  const json figure = drawn("strategies --counts 0,2,3,4");
  EXPECT_THAT(names(figure),
              ElementsAre("front, untrained", "back, trained", "back, untrained", "interleave, untrained"));
  EXPECT_EQ(line(figure, "back, trained")["x"], json({0.0, 2.0, 4.0}));
  EXPECT_EQ(line(figure, "back, untrained")["x"], json({0.0, 3.0}));
  EXPECT_NE(figure["subtitle"].get<std::string>().find("rings"), std::string::npos);

  EXPECT_EQ(point(figure, "back", 0)["trained"], nullptr);
  EXPECT_EQ(point(figure, "back", 2)["trained"], true);
  EXPECT_EQ(point(figure, "back", 2)["adapters"], json({tail, back_two}));
  EXPECT_EQ(point(figure, "back", 3)["trained"], false);
  EXPECT_EQ(point(figure, "back", 3)["adapters"], json({tail}));
  EXPECT_EQ(point(figure, "back", 4)["adapters"], json({tail, back_four}));
  EXPECT_EQ(point(figure, "front", 2)["trained"], false);
  EXPECT_EQ(figure["provenance"]["adapters"].size(), 3U);

  const json without = drawn("strategies --untrained --counts 0,2,3,4");
  EXPECT_THAT(names(without), ElementsAre("front, untrained", "back, untrained", "interleave, untrained"));
  const json back = line(without, "back, untrained");
  EXPECT_EQ(back["y"][2], line(figure, "back, untrained")["y"][1]);
  EXPECT_NE(back["y"][1], line(figure, "back, trained")["y"][1]);
  EXPECT_EQ(point(without, "back", 2)["adapters"], json({tail}));
}

TEST_F(FigureStudies, AFoldersAdaptersApplyWhereTheirScheduleIsThePoints) {
  fs::create_directories(at("mine"));
  fs::copy_file(source_folder() / "assets/adapters" / (back_two + ".safetensors"),
                at("mine/two.safetensors"));
  std::ofstream(at("mine/other.safetensors")) << "another program's"; // is left out
  const json figure = drawn("strategies --counts 2,4 --trained " + at("mine"));
  EXPECT_EQ(point(figure, "back", 2)["trained"], true);
  EXPECT_EQ(point(figure, "back", 2)["adapters"], json({tail, back_two}));
  EXPECT_EQ(point(figure, "back", 4)["trained"], false);
  EXPECT_EQ(point(figure, "back", 4)["adapters"], json({tail}));
}

TEST_F(FigureStudies, AccuracyIsMarkedAlike) {
  fs::create_directories(at("pictures/n02123045"));
  fs::copy_file(picture, at("pictures/n02123045/chelsea.png"));
  const std::string data = " --measure accuracy --data " + at("pictures") + " -o " + at("f.json");
  ASSERT_EQ(hydrascope("figure strategies --counts 2,3" + data).status, 0);
  const json strategies = json::parse(bytes_of(at("f.json")));
  EXPECT_EQ(line(strategies, "back, trained")["x"], json({2.0}));
  EXPECT_EQ(line(strategies, "back, untrained")["x"], json({3.0}));
  ASSERT_EQ(hydrascope("figure heads --kernels softmax,linear-cosine --counts 6" + data).status, 0);
  const json heads = json::parse(bytes_of(at("f.json")));
  EXPECT_THAT(names(heads), ElementsAre("softmax", "linear-cosine, untrained"));
  EXPECT_EQ(point(heads, "softmax", 6)["trained"], nullptr);
  EXPECT_EQ(point(heads, "linear-cosine", 6)["adapters"], json({tail}));
}

} // namespace
