// Many inputs, a figure each.
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/safetensors.h"
#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using hydrascope::SafetensorsFile;
using hydrascope::TensorView;
using nlohmann::json;

class FigureBatch : public ProgramTest {
protected:
  FigureBatch() {
    fs::create_directories(folder_ / "pictures");
    for (const char* const name : {"chelsea", "coffee"})
      fs::copy_file(deps_folder() / "examples" / (std::string(name) + ".png"),
                    folder_ / "pictures" / (std::string(name) + ".png"));
    const std::string whole = bytes_of(picture);
    std::ofstream(folder_ / "pictures/broken.png", std::ios::binary) << whole.substr(0, whole.size() / 3);
  }

  // Its shorter side is too short for a model that keeps the proportions of a picture.
  void add_strip() const {
    std::ofstream(folder_ / "pictures/strip.pgm", std::ios::binary) << "P5\n10000 1\n255\n"
                                                                    << std::string(10000, 'x');
  }

  const std::string proportional_ = "--model '" + (source_folder() / "tests/golden/models/dinov2").string() +
                                    "' --images '" + at("pictures") + "/*' ";
  const std::string images_ = "figure predictions --json --images '" + at("pictures") + "/*.png' ";
};

TEST_F(FigureBatch, GoesOnAfterABrokenPictureAndNamesWhatFailed) {
  const Outcome outcome =
      hydrascope("figure focus --json --images '" + at("pictures") +
                 "/*.png' --kernels softmax,hydra-cosine -o '" + at("out/{stem}-{kernel}.svg") + "'");
  EXPECT_EQ(outcome.status, 1);
  const auto told = json::parse(outcome.output);
  EXPECT_EQ(told["written"], 4);
  ASSERT_EQ(told["failed"].size(), 2u);
  EXPECT_EQ(told["failed"][0]["output"], at("out/broken-softmax.svg"));
  EXPECT_NE(told["failed"][0]["reason"].get<std::string>().find("broken.png"), std::string::npos);
  EXPECT_NE(outcome.errors.find("failed: " + at("out/broken-hydra-cosine.svg")), std::string::npos);
  EXPECT_NE(outcome.errors.find("error: figure: 2 of 6 figures failed"), std::string::npos);
  for (const char* const name :
       {"chelsea-softmax", "chelsea-hydra-cosine", "coffee-softmax", "coffee-hydra-cosine"})
    EXPECT_TRUE(fs::exists(folder_ / "out" / (std::string(name) + ".svg"))) << name;
  EXPECT_FALSE(fs::exists(folder_ / "out/broken-softmax.svg"));
}

TEST_F(FigureBatch, AFigureOfManyIsTheOneThatItsOwnCommandDraws) {
  hydrascope(images_ + "-o '" + at("{stem}.svg") + "'");
  ASSERT_EQ(
      hydrascope("figure predictions --image " + at("pictures/coffee.png") + " -o " + at("alone.svg")).status,
      0);
  EXPECT_EQ(bytes_of(folder_ / "coffee.svg"), bytes_of(folder_ / "alone.svg"));
}

TEST_F(FigureBatch, KeepsWhatIsThereAndDrawsWhatIsNot) {
  const std::string command = images_ + "-o '" + at("{stem}.svg") + "'";
  ASSERT_EQ(json::parse(hydrascope(command).output)["written"], 2);
  // What the first one's figure is made with is found anew, so that another model or adapter would be
  // noticed.
  auto again = json::parse(hydrascope(command).output);
  EXPECT_EQ(again["written"], 1);
  EXPECT_EQ(again["kept"], 1);
  fs::copy_file(deps_folder() / "examples/astronaut.png", folder_ / "pictures/coffee.png",
                fs::copy_options::overwrite_existing);
  again = json::parse(hydrascope(command).output);
  EXPECT_EQ(again["kept"], 0) << "another picture of the same name";
  EXPECT_EQ(again["written"], 2);
  EXPECT_EQ(json::parse(hydrascope(images_ + "--preset single -o '" + at("{stem}.svg") + "'").output)["kept"],
            0)
      << "another command";
}

TEST_F(FigureBatch, TextsAreNumberedByLine) {
  std::ofstream(at("texts.txt")) << "a hedgehog\n\nit eats\tat night\n";
  const Outcome outcome =
      hydrascope("figure layers --texts " + at("texts.txt") + " -o '" + at("{stem}-{line}.json") + "'");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "2 written, 0 kept, 0 failed\n");
  const auto pair = json::parse(bytes_of(folder_ / "texts-0003.json"));
  EXPECT_EQ(pair["provenance"]["input"]["pair"], "at night");
}

TEST_F(FigureBatch, AnInputThatAnOptionDoesNotFitDoesNotStopTheOthers) {
  add_strip();
  const Outcome pictures =
      hydrascope("figure focus --json " + proportional_ + "-o '" + at("{stem}.svg") + "'");
  EXPECT_EQ(pictures.status, 1);
  const json told = json::parse(pictures.output);
  EXPECT_EQ(told["written"], 2);
  ASSERT_EQ(told["failed"].size(), 2U); // broken.png, too
  EXPECT_NE(told["failed"][1]["reason"].get<std::string>().find("too long a strip"), std::string::npos);

  std::ofstream(at("texts.txt")) << "t\nthe cat sat on the mat\n";
  const std::string texts = "figure loss-strip --texts " + at("texts.txt") + " -o '" + at("{line}.svg") + "'";
  const Outcome lines =
      hydrascope(texts + " --model '" + (source_folder() / "tests/golden/decoders/written").string() + "'");
  EXPECT_EQ(lines.status, 1);
  EXPECT_NE(lines.errors.find("failed: " + at("0001.svg") + ": --text: has one token"), std::string::npos)
      << lines.errors;
  EXPECT_TRUE(fs::exists(folder_ / "0002.svg"));
  expect_error(texts + " --model minilm", 2, "no decoder"); // not one of them can be drawn
}

TEST_F(FigureBatch, AFigureOfAMapIsDrawnAgainFromItsFile) {
  fs::copy_file(source_folder() / "assets/maps/elu.py", folder_ / "my.py");
  std::ofstream(at("texts.txt")) << "a hedgehog\n";
  const std::string map = "phi:" + at("my.py");
  const Outcome outcome = hydrascope("figure weights --texts " + at("texts.txt") + " --kernels softmax," +
                                     map + " -o '" + at("out/{kernel}.json") + "'");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  ASSERT_TRUE(fs::exists(folder_ / "out/softmax.json"));
  fs::remove(folder_ / "out/softmax.json");
  const fs::path file = fs::directory_iterator(folder_ / "out")->path();
  EXPECT_TRUE(file.filename().string().starts_with("phi_map=my@")) << file;
  const std::string command = json::parse(bytes_of(file))["provenance"]["command"];
  EXPECT_NE(command.find("--kernels " + map), std::string::npos) << command;
  const Outcome again = hydrascope("reproduce '" + file.string() + "' -o " + at("again.json"));
  EXPECT_EQ(again.output, at("again.json") + ": identical\n") << again.errors;
}

TEST_F(FigureBatch, OneFileOfManyPicturesIsRowsOfMaps) {
  fs::remove(folder_ / "pictures/broken.png");
  const Outcome outcome = hydrascope("figure focus --images " + at("pictures") +
                                     " --kernels softmax,hydra-cosine -o " + at("rows.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const auto figure = json::parse(bytes_of(folder_ / "rows.json"));
  EXPECT_EQ(figure["panels"].size(), 6u);
  EXPECT_EQ(figure["provenance"]["inputs"].size(), 2u);
}

TEST_F(FigureBatch, ASheetPassesOverWhatIsBroken) {
  const Outcome outcome = hydrascope("figure sheet --images " + at("pictures") + " -o " + at("sheet.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_NE(outcome.errors.find("note: skipped"), std::string::npos);
  EXPECT_EQ(json::parse(bytes_of(folder_ / "sheet.json"))["panels"].size(), 2u);
}

TEST_F(FigureBatch, ASheetPassesOverWhatCannotBeRun) {
  add_strip();
  const std::string sheet = "figure sheet " + proportional_ + "-o " + at("sheet.json");
  const Outcome outcome = hydrascope(sheet);
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_NE(outcome.errors.find("note: skipped " + at("pictures/strip.pgm") + ": picture: 10000 by 1"),
            std::string::npos)
      << outcome.errors;
  EXPECT_EQ(json::parse(bytes_of(folder_ / "sheet.json"))["panels"].size(), 2U);
  expect_error(sheet + " --layer 99", 2, "--layer");
}

// Of a classifier's outputs the first alone is left.
TEST_F(FigureBatch, ASheetOfAModelThatPredictsANumberHasNoPercentages) {
  const fs::path golden = source_folder() / "tests/golden", model = folder_ / "age";
  fs::copy(golden / "models/deit", model);
  json config = json::parse(bytes_of(model / "config.json"));
  config["id2label"] = {{"0", "age"}};
  std::ofstream(model / "config.json") << config;
  const SafetensorsFile file = SafetensorsFile::open(golden / "models/deit/model.safetensors");
  std::map<std::string, TensorView> tensors = file.tensors();
  for (const char* const name : {"classifier.weight", "classifier.bias"}) {
    TensorView& tensor = tensors.at(name);
    tensor.bytes = tensor.bytes.first(tensor.bytes.size() / static_cast<std::size_t>(tensor.shape.front()));
    tensor.shape.front() = 1;
  }
  write_safetensors(model / "model.safetensors", tensors, file.metadata());
  const Outcome outcome =
      hydrascope("figure sheet --model " + model.string() + " --images '" +
                 (golden / "images/pictures/gradient.png").string() + "' -o " + at("sheet.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(json::parse(bytes_of(folder_ / "sheet.json"))["panels"][0]["title"], "age\n2.09");
}

TEST_F(FigureBatch, NamesThatMeetAreRefusedBeforeAnythingIsWritten) {
  expect_error("figure predictions --images '" + at("pictures") + "/*.png' -o '" + at("{folder}.svg") + "'",
               2, "both");
  EXPECT_FALSE(fs::exists(folder_ / "pictures.svg"));
  expect_error("figure predictions --images '" + at("pictures") + "/*.png' -o " + at("one.svg"), 2, "{stem}");
  expect_error("figure focus --images '" + at("pictures") + "/*.png' -o '" + at("{kernel}.svg") + "'", 2,
               "--kernels");
  expect_error("figure focus --images '" + at("nothing/*.png") + "' -o '" + at("{stem}.svg") + "'", 2,
               "names no picture");
}

} // namespace
