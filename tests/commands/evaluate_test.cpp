// `evaluate` as a user runs it, on small models.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

const std::string bert = (source_folder() / "tests/golden/models/bert").string();     // no, maybe, yes
const std::string dinov2 = (source_folder() / "tests/golden/models/dinov2").string(); // cat, dog, bird, fish

class EvaluateCommand : public ProgramTest {
protected:
  void write(const std::string& name, const std::string& text) const { std::ofstream(at(name)) << text; }

  // Two classes of two pictures each.
  void write_pictures() const {
    for (const std::string name : {"cat", "fish"}) {
      fs::create_directories(folder_ / "pictures" / name);
      for (const std::string number : {"1", "2"}) {
        std::string pixels = "P6\n30 30\n255\n";
        for (int i = 0; i < 30 * 30 * 3; ++i)
          pixels += static_cast<char>((i * (name == "cat" ? 7 : 13) + std::stoi(number) * i / 90) % 251);
        write(fmt::format("pictures/{0}/{0}{1}.ppm", name, number), pixels);
      }
    }
  }

  json answer(const std::string& arguments) const {
    const Outcome outcome = hydrascope("evaluate " + arguments + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(outcome.output);
  }
};

TEST_F(EvaluateCommand, TextsInJson) {
  write("table.tsv", "1\tid\ta b c\n0\tid\td e\n2\tid\tf\n1\tid\tg h\n");
  const json all = answer("--model " + bert + " --data " + at("table.tsv") + " --column 3 --label-column 1");
  EXPECT_EQ(all.at("items"), 4);
  EXPECT_GE(all.at("top1"), 0.0);
  EXPECT_LE(all.at("top1"), 1.0);
  EXPECT_EQ(all.at("top5"), 1.0);
  EXPECT_TRUE(all.at("matthews").is_number());
  EXPECT_TRUE(all.at("f1").is_number());
  EXPECT_EQ(all.at("f1_of"), "macro");
  EXPECT_TRUE(all.at("pointing").is_null());
  const Outcome table =
      hydrascope("evaluate --model " + bert + " --data " + at("table.tsv") + " --column 3 --label-column 1");
  EXPECT_NE(table.output.find("Matthews"), std::string::npos) << table.output;
  EXPECT_EQ(table.output.find("top-5"), std::string::npos) << table.output; // of three classes
}

TEST_F(EvaluateCommand, WhatIsWrongWithATable) {
  const std::string model = "evaluate --model " + bert + " --data ";
  write("labels.tsv", "a\tyes\nb\tperhaps\n");
  expect_error(model + at("labels.tsv"), 2, "no class of the model: perhaps");
  write("cells.tsv", "a\tyes\nb\n");
  expect_error(model + at("cells.tsv"), 1, "line 2 has no column 2");
  expect_error(model + at("labels.tsv") + " --column 2", 2, "--label-column");
  expect_error(model + at("none.tsv"), 1, "none.tsv");
  expect_error(model + at("labels.tsv") + " --boxes " + at("labels.tsv"), 2, "--boxes");
}

TEST_F(EvaluateCommand, PicturesAndTheirBoxes) {
  write_pictures();
  write("boxes.tsv",
        "image\tclass\tx0\ty0\tx1\ty1\ncat1.ppm\tcat\t0\t0\t29\t29\nfish2.ppm\t3\t0\t0\t14\t29\n");
  const std::string arguments = "--model " + dinov2 + " --data " + at("pictures");
  const json plain = answer(arguments);
  EXPECT_EQ(plain.at("items"), 4);
  EXPECT_TRUE(plain.at("matthews").is_null());
  EXPECT_TRUE(plain.at("pointing").is_null());
  const json boxed = answer(arguments + " --boxes " + at("boxes.tsv"));
  EXPECT_EQ(boxed.at("items"), 4);
  EXPECT_EQ(boxed.at("top1"), plain.at("top1"));
  EXPECT_EQ(boxed.at("pointing_items"), 2);
  EXPECT_EQ(boxed.at("pointing").at("chance"), 0.75);
  for (const char* method : {"focus", "rollout", "attention", "centre"})
    EXPECT_TRUE(boxed["pointing"].at(method).is_number()) << method;
}

TEST_F(EvaluateCommand, WhatIsWrongWithBoxes) {
  write_pictures();
  const std::string arguments = "evaluate --model " + dinov2 + " --data " + at("pictures") + " --boxes ";
  expect_error(arguments + at("none.tsv"), 1, "none.tsv");
  write("header.tsv", "cat1.ppm\tcat\t0\t0\t29\t29\ncat2.ppm\tcat\t0\t0\t29\t29\n");
  expect_error(arguments + at("header.tsv"), 1, "names no column image");
  write("cells.tsv", "image\tclass\tx0\ty0\tx1\ty1\ncat1.ppm\tcat\t0\tzero\t29\t29\n");
  expect_error(arguments + at("cells.tsv"), 1, "line 2: y0 is \"zero\"");
  write("others.tsv", "image\tclass\tx0\ty0\tx1\ty1\nhen1.ppm\that\t0\t0\t29\t29\n");
  expect_error(arguments + at("others.tsv"), 1, "holds no box of the pictures");
}

} // namespace
