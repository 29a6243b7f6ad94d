// `hydrascope flops` as a user runs it.
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

class FlopsCommand : public ProgramTest {
protected:
  std::string table(const std::string& arguments) const {
    const Outcome outcome = hydrascope("flops " + arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_EQ(outcome.errors, "");
    return outcome.output;
  }

  json list(const std::string& arguments) const { return json::parse(table(arguments + " --json")); }

  // Whether some line holds these words in this order.
  static bool has_line(const std::string& text, const std::vector<std::string>& words) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream cells(line);
      std::size_t found = 0;
      for (std::string cell; found < words.size() && cells >> cell;)
        if (cell == words[found]) ++found;
      if (found == words.size()) return true;
    }
    return false;
  }
};

TEST_F(FlopsCommand, PrintsTheHydraPapersTables) {
  const std::string printed = table("--architecture deit-base");
  const std::vector<std::vector<std::string>> expected = {
      {"224", "197", "softmax", "17.58", "17.45*", "4.10"},
      {"224", "back:2=hydra-cosine", "17.46"},
      {"224", "back:8=hydra-cosine", "17.11"},
      {"224", "hydra-cosine", "16.87", "0.02"},
      {"224", "poly-nl", "15.47"},
      {"384", "577", "softmax", "55.54", "55.14", "11.13"},
      {"384", "back:2=hydra-cosine", "54.52"},
      {"384", "back:7=hydra-cosine", "51.96"},
      {"384", "hydra-cosine", "49.40", "49.02", "0.02"},
      {"384", "local-window", "51.10", "4.10"},
      {"1024", "4097", "softmax", "657.37", "47.06"},
      {"1024", "local-window", "362.85", "4.10"},
      {"1280", "6401", "softmax", "1298.88", "58.14"},
  };
  for (const auto& words : expected) EXPECT_TRUE(has_line(printed, words)) << words[0] << ' ' << words[1];
  EXPECT_EQ(printed, table("")) << "DeiT-B is the default";
}

TEST_F(FlopsCommand, SaysWhereThePapersTable4PrintsAnotherConvention) {
  EXPECT_TRUE(has_line(table("--image-size 224"), {"*", "table", "4", "17.6", "224", "total"}));
  EXPECT_FALSE(has_line(table("--image-size 384"), {"*", "table"}));
  EXPECT_FALSE(has_line(table("--architecture deit-small --image-size 224"), {"*", "table"}));
  const json rows = list("--image-size 224,384 --kernel softmax");
  EXPECT_NE(rows[0]["note"].get<std::string>().find("17.6"), std::string::npos);
  EXPECT_FALSE(rows[1].contains("note"));
}

TEST_F(FlopsCommand, TakesASchedule) {
  const std::string printed =
      table("--architecture deit-base --image-size 224,384 --replace back:2=hydra-cosine");
  EXPECT_TRUE(has_line(printed, {"224", "back:2=hydra-cosine", "17.46"}));
  EXPECT_TRUE(has_line(printed, {"384", "back:2=hydra-cosine", "54.52"}));
  EXPECT_FALSE(has_line(printed, {"224", "softmax", "17.58"}));
  EXPECT_EQ(list("--kernel softmax --image-size 224").size(), 1u) << "the default, asked for by name";
}

TEST_F(FlopsCommand, JsonHoldsEachLayer) {
  const json rows = list("--image-size 384 --kernel hydra-cosine --layers 0=softmax");
  ASSERT_EQ(rows.size(), 1u);
  const json& row = rows[0];
  EXPECT_EQ(row["architecture"], "deit-base");
  EXPECT_EQ(row["image_size"], 384);
  EXPECT_EQ(row["tokens"], 577);
  ASSERT_EQ(row["layers"].size(), 12u);
  EXPECT_EQ(row["layers"][0]["kernel"], "softmax");
  EXPECT_EQ(row["layers"][11]["kernel"], "hydra-cosine");
  EXPECT_EQ(row["layers"][11]["attention_in_total"], 0.0);
  double total = row["embedding"].get<double>() + row["head"].get<double>() + row["norms"].get<double>();
  double blocks = 0, attention = 0;
  for (const json& layer : row["layers"]) {
    total += layer["total"].get<double>();
    blocks += layer["blocks"].get<double>();
    attention += layer["attention"].get<double>();
  }
  EXPECT_NEAR(row["total"].get<double>(), total, 1e-9);
  EXPECT_NEAR(row["blocks"].get<double>(), blocks, 1e-9);
  EXPECT_NEAR(row["attention_share"].get<double>(), attention / blocks, 1e-12);
}

TEST_F(FlopsCommand, CountsTextsAndModelsAtHand) {
  const json texts =
      list("--architecture minilm --tokens 7,512 --kernels softmax,performer:features=64,seed=3");
  ASSERT_EQ(texts.size(), 4u);
  EXPECT_EQ(texts[3]["tokens"], 512);
  EXPECT_EQ(texts[3]["schedule"], "performer:features=64,seed=3");
  const json model = list("--model vit-small --kernel softmax --image-size 168");
  EXPECT_EQ(model[0]["tokens"], 145);
  // DINOv2-S without a classifier: patches of 14 · 14 pixels, 12 blocks with an MLP of 4 · D, 25 norms.
  constexpr double N = 145, D = 384;
  const double total = 144 * 3 * 14 * 14 * D + 12 * (12 * N * D * D + 2 * N * N * D) + 25 * 5 * N * D;
  EXPECT_NEAR(model[0]["total"].get<double>(), total / 1e9, 1e-9);
}

TEST_F(FlopsCommand, PerLayerAddsATableForEachRow) {
  const std::string printed = table("--image-size 224 --per-layer --replace back:2=hydra-cosine");
  EXPECT_TRUE(has_line(printed, {"9", "softmax", "59.61"}));
  EXPECT_TRUE(has_line(printed, {"10", "hydra-cosine", "0.30"}));
}

TEST_F(FlopsCommand, BadRequestsAreOneLineWithTheirStatus) {
  expect_error("flops --architecture diet-base", 2, "deit-base");
  expect_error("flops --architecture ''", 2, "--architecture");
  expect_error("flops --architecture deit-base --image-size 225", 2, "224 or 240");
  expect_error("flops --image-size 0", 2, "--image-size");
  expect_error("flops --image-size 224,x", 2, "--image-size");
  expect_error("flops --architecture minilm --tokens 0", 2, "--tokens");
  expect_error("flops --architecture minilm --image-size 224", 2, "--tokens");
  expect_error("flops --tokens 12", 2, "--image-size");
  expect_error("flops --kernel sotfmax", 2, "softmax");
  expect_error("flops --layers 12=elu", 2, "0 to 11");
  expect_error("flops --kernels elu --kernel relu", 2, "--kernels");
  expect_error("flops --model missing-folder", 1, "missing-folder");
  expect_error("flops --model vit-small --architecture deit-base", 2, "--model");
  expect_error("flops --model vit-small --patch-size 7", 2, "--patch-size");
}

} // namespace
