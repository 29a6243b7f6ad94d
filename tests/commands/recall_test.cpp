// `hydrascope recall`: what it prints, keeps and resumes, and the figure of it.
#include <cmath>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

const std::string quick = "recall --preset small --sequences 64,20,40 --epochs 1 --threads 1 --seed 2 ";

class Recall : public ProgramTest {};

TEST_F(Recall, ListsAccuracyAndEntropyByKernelAndTheFigureDrawsThem) {
  const Outcome outcome =
      hydrascope(quick + "--kernel softmax,performer:features=16,hydra-cosine --json -o " +
                 at("recall.json") + " --curve '" + at("{kernel}.csv") + "'");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const json list = json::parse(outcome.output);
  EXPECT_EQ(json::parse(bytes_of(folder_ / "recall.json")), list);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0]["kernel"], "softmax");
  EXPECT_EQ(list[1]["kernel"], "performer:features=16");
  for (const json& entry : list) {
    EXPECT_GE(entry["accuracy"].get<double>(), 0);
    EXPECT_LE(entry["accuracy"].get<double>(), 1);
    EXPECT_EQ(entry["epochs"], 1);
    EXPECT_EQ(entry["steps"], 2); // 64 sequences in batches of 32
    EXPECT_GT(entry["loss"].get<double>(), 0);
    EXPECT_GT(entry["parameters"].get<int>(), 0);
  }
  EXPECT_GT(list[0]["entropy"].get<double>(), 0);
  EXPECT_EQ(list[0]["layer_entropies"].size(), 2u);
  EXPECT_TRUE(list[2]["entropy"].is_null()) << "signed weights have no entropy";
  EXPECT_EQ(bytes_of(folder_ / "performer-features-16.csv").substr(0, 10), "step,loss\n");

  const Outcome figure = hydrascope("figure recall --data " + at("recall.json") + " -o " + at("f.json"));
  ASSERT_EQ(figure.status, 0) << figure.errors;
  EXPECT_NE(figure.errors.find("hydra-cosine"), std::string::npos) << "what is left out is said";
  const json lines = json::parse(bytes_of(folder_ / "f.json"))["panels"][0]["lines"];
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["x"][0], list[0]["entropy"]);
  EXPECT_DOUBLE_EQ(lines[1]["y"][0].get<double>(), 100 * list[1]["accuracy"].get<double>());
}

TEST_F(Recall, ResumesOnlyWithAListOfItsOwn) {
  const std::string what = quick + "-o " + at("recall.json") + " --kernel elu";
  ASSERT_EQ(hydrascope(what).status, 0);
  json list = json::parse(bytes_of(folder_ / "recall.json"));
  const auto resumed = [&] {
    std::ofstream(folder_ / "recall.json") << list;
    return hydrascope(what + " --resume");
  };
  list[0]["loss"] = nullptr; // not finite
  const Outcome diverged = resumed();
  EXPECT_EQ(diverged.status, 0) << diverged.errors;
  EXPECT_NE(diverged.output.find("—"), std::string::npos) << diverged.output;
  list[0].erase("accuracy");
  const Outcome refused = resumed();
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.errors.find("recall.json: is no list that recall wrote"), std::string::npos)
      << refused.errors;
}

TEST_F(Recall, ResumesWithWhatTheOutputHolds) {
  const std::string what = quick + "-o " + at("recall.json") + " --json --kernel ";
  const Outcome first = hydrascope(what + "elu");
  ASSERT_EQ(first.status, 0) << first.errors;
  const Outcome second = hydrascope(what + "elu,relu --resume");
  ASSERT_EQ(second.status, 0) << second.errors;
  const json list = json::parse(second.output);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0], json::parse(first.output)[0]) << "with the very seconds: it was not trained again";
  EXPECT_FALSE(fs::exists(at("recall.json.relu.checkpoint")));
  // Results that this run has not reached, or does not ask for, stay in the file.
  ASSERT_EQ(hydrascope(what + "performer:features=16 --resume").status, 0);
  EXPECT_EQ(json::parse(bytes_of(at("recall.json"))).size(), 3u);
  const json other = json::parse(hydrascope(what + "elu --lr 2e-3 --resume").output);
  EXPECT_NE(other[0]["loss"], list[0]["loss"]) << "other settings are another training";
}

TEST_F(Recall, PrintsATable) {
  const Outcome outcome = hydrascope(quick + "--kernel softmax --loss all");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  std::istringstream lines(outcome.output);
  std::string header, row, kernel, accuracy, per_cent, entropy, loss, epochs;
  ASSERT_TRUE(std::getline(lines, header) && std::getline(lines, row));
  EXPECT_EQ(header.rfind("kernel  ", 0), 0u) << header;
  std::istringstream(row) >> kernel >> accuracy >> per_cent >> entropy >> loss >> epochs;
  EXPECT_EQ(kernel, "softmax");
  EXPECT_EQ(per_cent, "%");
  // Weights over the 63 tokens that are read: at most the entropy of uniform ones over as many as precede
  // each.
  double uniform = 0;
  for (int tokens = 1; tokens <= 63; ++tokens) uniform += std::log(tokens) / 63;
  EXPECT_GT(std::stod(entropy), 0);
  EXPECT_LE(std::stod(entropy), uniform + 5e-4);
  EXPECT_GT(std::stod(loss), 0);
  EXPECT_EQ(epochs, "1");
}

TEST_F(Recall, SaysWhatItCannotDo) {
  expect_error("recall", 2, "--kernel");
  expect_error(quick + "--kernel cosformer:m=3", 2, "more than m=3");
  expect_error(quick + "--kernel softmax,elu --curve " + at("c.csv"), 2, "{kernel}");
  expect_error(quick + "--kernel softmax --resume", 2, "-o");
  expect_error("recall --kernel softmax --preset large", 2, "--preset");
  expect_error("recall --kernel elu --sequences 2147483647,4,4", 2,
               "--sequences: must lie between 1 and 1000000 of each kind");
  std::ofstream(at("other.json")) << "{}";
  expect_error(quick + "--kernel softmax --resume -o " + at("other.json"), 1, "other.json");
  std::ofstream(at("signed.json")) << R"([{"kernel":"hydra-cosine","accuracy":0.2,"entropy":null}])";
  expect_error("figure recall --data " + at("signed.json") + " -o " + at("f.svg"), 1, "entropy");
  expect_error("figure recall -o " + at("f.svg"), 2, "--data");
}

} // namespace
