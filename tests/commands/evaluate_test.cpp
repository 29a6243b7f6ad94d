// `evaluate` as a user runs it, on small models.
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

const std::string bert = (source_folder() / "tests/golden/models/bert").string();     // no, maybe, yes
const std::string dinov2 = (source_folder() / "tests/golden/models/dinov2").string(); // cat, dog, bird, fish

// A golden adapter of a model with the classes red, green and blue, and its kernel.
std::string adapted(const std::string& model, const std::string& kernel) {
  const auto file = source_folder() / "tests/golden/adapters" /
                    (fs::path(model).filename().string() + "-" + kernel + ".safetensors");
  return "--model '" + model + "' --adapter '" + file.string() + "' --kernel " + kernel + " ";
}

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

// The predictions were computed from the kernel's formula in float64 (Encoder in
// tools/golden/check_adapters.py): blue, green, green, blue, green, each by at least 0.2 of a logit.
TEST_F(EvaluateCommand, TextsInJson) {
  write("table.tsv",
        "blue\tid\ta word\ngreen\tid\tsoft token\nblue\tid\tsum over the mat\n"
        "red\tid\tthe linear head is not soft\ngreen\tid\tcat on a mat\n");
  const std::string arguments =
      adapted(bert, "hydra-mean") + "--data " + at("table.tsv") + " --column 3 --label-column 1";
  const json all = answer(arguments);
  EXPECT_EQ(all.at("items"), 5);
  EXPECT_DOUBLE_EQ(all.at("top1"), 3.0 / 5);
  EXPECT_EQ(all.at("top5"), 1.0);
  EXPECT_DOUBLE_EQ(all.at("constant_answer"), 2.0 / 5) << "always blue, or always green";
  // Labels 1, 2, 2 of red, green, blue and predictions 0, 3, 2: (3·5 − (3·2 + 2·2)) / √((25 − 13)(25 − 9)).
  EXPECT_NEAR(all.at("matthews").get<double>(), 5 / std::sqrt(12.0 * 16), 1e-12);
  // 2·right / (labels + predictions): 0, 4/5, 2/4.
  EXPECT_NEAR(all.at("f1").get<double>(), (0 + 0.8 + 0.5) / 3, 1e-12);
  EXPECT_EQ(all.at("f1_of"), "macro");
  EXPECT_TRUE(all.at("pointing").is_null());
  const std::string table = hydrascope("evaluate " + arguments).output;
  EXPECT_NE(table.find("60.00 %"), std::string::npos) << table;
  EXPECT_NE(table.find("0.3608"), std::string::npos) << table;
  EXPECT_NE(table.find("0.4333"), std::string::npos) << table;
  EXPECT_EQ(table.find("top-5"), std::string::npos) << table; // of three classes
}

TEST_F(EvaluateCommand, WithoutAnAdapterTheResultIsUntrained) {
  write("table.tsv", "a word\tno\na cat\tyes\n");
  const std::string arguments =
      "--model '" + bert + "' --no-adapter --data " + at("table.tsv") + " --kernel ";
  const json all = answer(arguments + "elu");
  ASSERT_EQ(all.at("notes").size(), 1U);
  EXPECT_EQ(all["notes"][0].get<std::string>().find("untrained: no adapter for elu in "), 0U) << all["notes"];
  EXPECT_EQ(answer(arguments + "softmax").at("notes"), json::array());
  const Outcome told = hydrascope("evaluate " + arguments + "elu");
  EXPECT_NE(told.errors.find("note: untrained"), std::string::npos) << told.errors;
}

// Transformers' logits of this picture under the adapter (tests/golden/adapters/expected): red 4.93, green
// 4.00, blue −4.64. It lies in all three folders.
TEST_F(EvaluateCommand, OnePictureInEveryClassIsRightOnce) {
  const fs::path picture = source_folder() / "tests/golden/images/pictures/gradient.png"; // 61 × 43
  for (const std::string name : {"red", "green", "blue"}) {
    fs::create_directories(folder_ / "pictures" / name);
    fs::copy_file(picture, folder_ / "pictures" / name / (name + ".png"));
  }
  const std::string arguments = adapted(dinov2, "softmax") + "--data " + at("pictures");
  const json plain = answer(arguments);
  EXPECT_EQ(plain.at("items"), 3);
  EXPECT_DOUBLE_EQ(plain.at("top1"), 1.0 / 3);
  EXPECT_EQ(plain.at("top5"), 1.0);
  EXPECT_TRUE(plain.at("matthews").is_null());

  // The left half, the right half, all: a map that does not depend on the class points into one of the
  // halves, and of the 2 × 2 patches two lie in each.
  write("boxes.tsv",
        "image\tclass\tx0\ty0\tx1\ty1\nred.png\tred\t0\t0\t29\t42\ngreen.png\tgreen\t30\t0\t60\t42\n"
        "blue.png\tblue\t0\t0\t60\t42\n");
  const json halves = answer(arguments + " --boxes " + at("boxes.tsv"));
  EXPECT_EQ(halves.at("top1"), plain.at("top1"));
  EXPECT_EQ(halves.at("pointing_items"), 3);
  for (const char* method : {"rollout", "attention", "centre", "chance"})
    EXPECT_NEAR(halves["pointing"].at(method).get<double>(), 2.0 / 3, 1e-12) << method;

  write("whole.tsv",
        "image\tclass\tx0\ty0\tx1\ty1\nred.png\tred\t0\t0\t60\t42\ngreen.png\tgreen\t0\t0\t60\t42\n"
        "blue.png\tblue\t0\t0\t60\t42\n");
  const json whole = answer(arguments + " --boxes " + at("whole.tsv"));
  for (const char* method : {"rollout", "attention", "centre", "chance"})
    EXPECT_EQ(whole["pointing"].at(method), 1.0) << method;
  EXPECT_NEAR(whole["pointing"].at("focus").get<double>(), 1 - whole.at("pointing_empty").get<double>() / 3,
              1e-12);
}

TEST_F(EvaluateCommand, Curves) {
  write_pictures();
  const std::string arguments = adapted(dinov2, "softmax") + "--data " + at("pictures") + " --curves 3";
  fs::rename(at("pictures/cat"), at("pictures/red"));
  fs::rename(at("pictures/fish"), at("pictures/blue"));
  const json all = answer(arguments);
  EXPECT_EQ(all.at("curves_items"), 4);
  for (const char* method : {"focus", "rollout", "attention", "centre", "random"})
    for (const char* order : {"deletion", "insertion"}) {
      const json& area = all.at("curves").at(method).at(order);
      EXPECT_GT(area.at("mean").get<double>(), 0) << method << order;
      EXPECT_LT(area.at("mean").get<double>(), 1) << method << order;
    }
  const json& differences = all.at("curves_differences");
  ASSERT_EQ(differences.size(), 10U);
  for (const json& one : differences) {
    const auto mean = [&](const std::string& method) {
      return all.at("curves").at(method).at("deletion").at("mean").get<double>();
    };
    EXPECT_NEAR(one.at("deletion").at("mean").get<double>(), mean(one.at("of")) - mean(one.at("from")),
                1e-12);
  }
  const json half = answer(arguments + " --dtype bfloat16");
  for (const auto& [method, areas] : half.at("curves").items())
    EXPECT_NEAR(areas.at("deletion").at("mean").get<double>(),
                all.at("curves").at(method).at("deletion").at("mean").get<double>(), 0.05)
        << method;
  const std::string text = hydrascope("evaluate " + arguments).output;
  EXPECT_NE(text.find("focus − random"), std::string::npos) << text;
  write("table.tsv", "blue\ta word\n");
  expect_error("evaluate " + adapted(bert, "hydra-mean") + "--data " + at("table.tsv") +
                   " --column 2 --label-column 1 --curves 3",
               2, "--curves");
}

// A model that was fine-tuned to numbers: its correlations, and what `run` predicts.
TEST_F(EvaluateCommand, NumbersInJson) {
  std::string table = "score\ta\tb\n";
  for (int i = 0; i < 24; ++i)
    table += fmt::format("{}\t{}\tword {}\n", i % 2 == 0 ? 4.5 : 0.5,
                         i % 2 == 0 ? "the cat sat on a mat" : "the sum is linear", i);
  write("scores.tsv", table);
  const std::string columns =
      " --column 2 --pair-column 3 --label-column 1 --header --data " + at("scores.tsv");
  const std::string model = " --model " + bert + " --adapter " + at("scored.safetensors");
  const Outcome trained =
      hydrascope("finetune --objective regression --no-adapter --model " + bert + columns +
                 " --train-layers 0-1,head,embeddings --epochs 8 --patience 0 --batch 4 --lr 3e-3 "
                 "--dtype float32 --json -o " +
                 at("scored.safetensors"));
  ASSERT_EQ(trained.status, 0) << trained.errors;
  const json training = json::parse(trained.output);
  EXPECT_GT(training.at("pearson").get<double>(), 0.8);
  EXPECT_GT(training.at("spearman").get<double>(), 0.8);

  const json all = answer(model + columns);
  EXPECT_EQ(all.at("items"), 24);
  EXPECT_TRUE(all.at("top1").is_null());
  EXPECT_TRUE(all.at("constant_answer").is_null());
  EXPECT_TRUE(all.at("f1").is_null());
  EXPECT_GT(all.at("pearson").get<double>(), 0.8);
  EXPECT_GT(all.at("spearman").get<double>(), 0.8);
  EXPECT_LT(all.at("squared_error").get<double>(), 2) << "the labels' variance is 4";
  const std::string text = hydrascope("evaluate" + model + columns).output;
  EXPECT_NE(text.find("Spearman"), std::string::npos) << text;
  EXPECT_EQ(text.find("top-1"), std::string::npos) << text;

  const std::string input = "run" + model + " --text 'the cat sat on a mat' --pair 'word 1'";
  const json run = json::parse(hydrascope(input + " --json").output);
  ASSERT_EQ(run.at("predictions").size(), 1u);
  EXPECT_NEAR(run["predictions"][0].at("number").get<double>(), 4.5, 1);
  EXPECT_FALSE(run["predictions"][0].contains("probability"));
  EXPECT_NE(hydrascope(input).output.find("predicted number: "), std::string::npos);
  EXPECT_EQ(hydrascope("figure predictions -o " + at("f.json") + input.substr(3)).status, 0);
  const json figure = json::parse(bytes_of(at("f.json")));
  EXPECT_EQ(figure.dump().find("probability"), std::string::npos) << figure.dump(2);

  write("words.tsv", "high\ta\tb\n");
  expect_error("evaluate" + model + " --column 2 --pair-column 3 --label-column 1 --data " + at("words.tsv"),
               1, "the label \"high\" of \"a\" is no number");
}

TEST_F(EvaluateCommand, WhatIsWrongWithATable) {
  const std::string model = "evaluate --model " + bert + " --data ";
  write("labels.tsv", "a\tyes\nb\tperhaps\n");
  expect_error(model + at("labels.tsv"), 2, "no class of the model: perhaps");
  write("cells.tsv", "a\tyes\nb\n");
  expect_error(model + at("cells.tsv"), 1, "line 2 has no column 2");
  expect_error(model + at("labels.tsv") + " --column 2", 2, "--label-column");
  expect_error(model + at("none.tsv"), 1, "none.tsv");
  expect_error(model + at("labels.tsv") + " --device cuda:99", 1, "--device cuda:99");
  expect_error(model + at("labels.tsv") + " --boxes " + at("labels.tsv"), 2, "--boxes");
}

// Without --model: the default of texts has no classifier, which is not what is wrong.
TEST_F(EvaluateCommand, DataThatAreNotThereAreNamedBeforeTheModel) {
  for (const std::string measure : {"", "--perplexity ", "--rouge "})
    expect_error("evaluate " + measure + "--data " + at("none"), 1,
                 at("none") + ": No such file or directory");
}

TEST_F(EvaluateCommand, PicturesWithoutABoxCountForTheClassesAlone) {
  write_pictures();
  write("boxes.tsv",
        "image\tclass\tx0\ty0\tx1\ty1\ncat1.ppm\tcat\t0\t0\t29\t29\nfish2.ppm\t3\t0\t0\t14\t29\n");
  const json boxed =
      answer("--model " + dinov2 + " --data " + at("pictures") + " --boxes " + at("boxes.tsv"));
  EXPECT_EQ(boxed.at("items"), 4);
  EXPECT_EQ(boxed.at("pointing_items"), 2);
  EXPECT_EQ(boxed.at("pointing").at("chance"), 0.75); // all of four patches, and two of four
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
