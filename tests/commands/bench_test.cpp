// `bench kernels` as a user runs it. Its numbers are a machine's own; only what must hold on each is
// asserted.
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "tests/commands/program.h"
#include "tests/support/checkout.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

class BenchCommand : public ProgramTest {};

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto found = text.find(part); found != std::string::npos; found = text.find(part, found + part.size()))
    ++count;
  return count;
}

std::string tiny_model(const std::string& name) {
  return "'" + (source_folder() / "tests/golden/models" / name).string() + "'";
}

TEST_F(BenchCommand, KernelsStandBesideTheMachinesLimits) {
  const Outcome outcome = hydrascope(
      "bench kernels --kernels hydra-cosine,elu,cosformer:m=100 --tokens 64,197 --heads 2 --head-width 16 "
      "--dtype float32,bfloat16 --seconds 0.01 --threads 1 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const json entries = json::parse(outcome.output);
  ASSERT_EQ(entries.size(), 3U * 2 * 2);
  int skipped = 0;
  std::map<std::string, std::set<double>> limits;
  for (const json& entry : entries) {
    EXPECT_EQ(entry.at("H"), 2);
    EXPECT_EQ(entry.at("d"), 16);
    EXPECT_EQ(entry.at("device"), "cpu");
    if (entry.contains("skipped")) {
      ++skipped;
      EXPECT_EQ(entry.at("kernel"), "cosformer:m=100");
      EXPECT_EQ(entry.at("N"), 197);
      continue;
    }
    const double size = entry.at("dtype") == "float32" ? 4 : 2, tokens = entry.at("N");
    const double seconds = 1e-3 * entry.at("median_ms").get<double>();
    EXPECT_GT(seconds, 0);
    EXPECT_GE(entry.at("p95_ms"), entry.at("median_ms"));
    // q, k, v and the output once each; two operations for a multiplication with its addition: Σ φ(k)vᵀ and
    // φ(q)·S with the row's sum (elu, cosformer), two element-wise products (hydra-cosine).
    const double bytes = 4 * tokens * 32 * size;
    const double features = entry.at("kernel") == "elu" ? 16 : 32; // cosformer: cosine and sine of each
    const double flops = entry.at("kernel") == "hydra-cosine"
                             ? 2 * (2 * tokens * 32)
                             : 2 * (2 * tokens * 2 * features * 16 + tokens * 2 * features);
    EXPECT_NEAR(entry.at("bytes_per_second").get<double>() * seconds / bytes, 1, 1e-9);
    EXPECT_NEAR(entry.at("flops_per_second").get<double>() * seconds / flops, 1, 1e-9);
    EXPECT_GT(entry.at("read_bytes_per_second").get<double>(), 0);
    const double triad = entry.at("triad_bytes_per_second"), matrix = entry.at("matrix_flops_per_second");
    EXPECT_NEAR(entry.at("share_of_bandwidth").get<double>() * triad * seconds / bytes, 1, 1e-9);
    EXPECT_NEAR(entry.at("share_of_flops").get<double>() * matrix * seconds / flops, 1, 1e-9);
    limits[entry.at("dtype")].insert(matrix);
    EXPECT_GE(entry.at("peak_bytes"), tokens * 32 * size); // the output at least
    EXPECT_EQ(entry.at("path"), "fused cpu");
    EXPECT_TRUE(entry.contains("device_state"));
  }
  EXPECT_EQ(skipped, 2);
  ASSERT_EQ(limits.size(), 2U);
  for (const auto& [dtype, rates] : limits) EXPECT_EQ(rates.size(), 1U) << dtype << ": measured once";
}

TEST_F(BenchCommand, BothTypesAreMeasuredWhereTheProcessorHasThem) {
  std::string processor;
  for (const json& check : json::parse(hydrascope("doctor --json").output))
    if (check.at("name") == "processor") processor = check.at("found").get<std::string>();
  std::vector<std::string> expected = {"float32"};
  for (const char* const loops : {", avx512bf16 loops", ", amx loops"})
    if (processor.ends_with(loops)) expected.emplace_back("bfloat16");
  const json entries = json::parse(
      hydrascope("bench kernels --kernels elu -N 64 --heads 2 --head-width 16 --seconds 0.01 --json").output);
  std::vector<std::string> dtypes;
  for (const json& entry : entries) dtypes.push_back(entry.at("dtype").get<std::string>());
  EXPECT_EQ(dtypes, expected) << processor;
}

TEST_F(BenchCommand, AGpuIsMeasuredOrSaidToBeMissing) {
  const Outcome outcome = hydrascope(
      "bench kernels --device cuda --kernels hydra-cosine --tokens 64 --dtype float16 --seconds 0.01 --json");
  if (outcome.status == 0) {
    const json entry = json::parse(outcome.output).at(0);
    EXPECT_EQ(entry.at("device"), "cuda");
    EXPECT_GT(entry.at("median_ms"), 0);
  } else {
    EXPECT_NE(outcome.errors.find("there is no CUDA here"), std::string::npos) << outcome.errors;
    EXPECT_TRUE(outcome.output.empty());
  }
  EXPECT_NE(hydrascope("bench kernels --device abacus --tokens 64").status, 0);
  EXPECT_NE(hydrascope("bench kernels --kernels elu --tokens 64 --dtype float16").status, 0);
}

TEST_F(BenchCommand, ScalingHasEveryLengthOrSaysWhyNot) {
  const Outcome outcome = hydrascope(
      "bench scaling --kernels softmax,cosformer:m=100 --tokens 128,64 --heads 2 --head-width 16 --seconds "
      "0.01 "
      "--threads 1 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const json entries = json::parse(outcome.output);
  ASSERT_EQ(entries.size(), 4U);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const json& entry = entries[i];
    EXPECT_EQ(entry.at("N"), i % 2 == 0 ? 64 : 128); // ascending
    EXPECT_EQ(entry.contains("skipped"), i == 3) << entry;
    if (i == 3) continue;
    EXPECT_GT(entry.at("median_ms"), 0);
    EXPECT_GE(entry.at("peak_bytes"), entry.at("N").get<int>() * 2 * 16 * 4); // the output at least
  }
  const Outcome table = hydrascope("bench scaling --kernels cosformer:m=100 --tokens 128 --seconds 0.01");
  EXPECT_NE(table.output.find("cosformer:m=100 at N = 128: "), std::string::npos) << table.output;
}

TEST_F(BenchCommand, HeadsAreAllThatDivideTheWidth) {
  const Outcome outcome = hydrascope("bench heads --width 12 --tokens 20 --seconds 0.01 --threads 1 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const json entries = json::parse(outcome.output);
  std::vector<int> heads;
  for (const json& entry : entries) {
    EXPECT_EQ(entry.at("H").get<int>() * entry.at("d").get<int>(), 12);
    EXPECT_GT(entry.at("median_ms"), 0);
    if (entry.at("kernel") == "linear-cosine") heads.push_back(entry.at("H"));
  }
  EXPECT_EQ(heads, (std::vector<int>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(entries.size(), 2 * heads.size());
}

TEST_F(BenchCommand, WhatIsNamedTwiceIsMeasuredAndListedOnce) {
  const std::string quick = " --seconds 0.01 --threads 1";
  const std::string scaling = "bench scaling --kernels elu,elu -N 64,32,64 --heads 2 --head-width 8" + quick;
  EXPECT_EQ(json::parse(hydrascope(scaling + " --json").output).size(), 2U);
  const Outcome lengths = hydrascope(scaling);
  ASSERT_EQ(lengths.status, 0) << lengths.errors;
  EXPECT_EQ(occurrences(lengths.output, "N = 64"), 2U) << lengths.output; // time, memory
  EXPECT_EQ(occurrences(lengths.output, "\nelu "), 2U) << lengths.output;

  const std::string heads = "bench heads --width 4 -N 20 --kernels elu,elu" + quick;
  EXPECT_EQ(json::parse(hydrascope(heads + " --json").output).size(), 3U);
  const Outcome kernels = hydrascope(heads);
  ASSERT_EQ(kernels.status, 0) << kernels.errors;
  EXPECT_EQ(occurrences(kernels.output, "elu"), 2U) << kernels.output;

  EXPECT_EQ(json::parse(hydrascope("bench kernels --kernels elu,elu -N 64,64 --dtype float32,float32 "
                                   "--heads 2 --head-width 8 --json" +
                                   quick)
                            .output)
                .size(),
            1U);
}

TEST_F(BenchCommand, MapsOfOneNameAreRowsOfTheirOwn) {
  std::string kernels;
  for (const char* const map : {"elu", "relu"}) {
    fs::create_directories(folder_ / map);
    fs::copy_file(source_folder() / "assets/maps" / (std::string(map) + ".py"), folder_ / map / "my.py");
    kernels += (kernels.empty() ? "phi:" : ",phi:") + at(std::string(map) + "/my.py");
  }
  const Outcome outcome = hydrascope("bench scaling --kernels " + kernels +
                                     " -N 64 --heads 2 --head-width 8 --seconds 0.01 --threads 1");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(occurrences(outcome.output, "\nphi my  "), 4U) << outcome.output; // time, memory
}

TEST_F(BenchCommand, ModelStandsBesideItsBounds) {
  for (const char* folder : {"vit", "bert"}) {
    const Outcome outcome =
        hydrascope("bench model --model " + tiny_model(folder) +
                   " --batch 1,2 --runs 3 --warm-ups 1 --threads 1 --tokens 12 --schedule softmax --schedule "
                   "back:1=hydra-cosine --json");
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    const json entries = json::parse(outcome.output);
    ASSERT_EQ(entries.size(), 2U * 5);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const json& entry = entries[i];
      EXPECT_EQ(entry.at("batch"), i < 5 ? 1 : 2);
      EXPECT_EQ(entry.at("runs"), 3);
      EXPECT_GT(entry.at("items_per_second"), 0);
      const double softmax = entries[i / 5 * 5].at("items_per_second");
      EXPECT_NEAR(entry.at("times_softmax").get<double>() * softmax,
                  entry.at("items_per_second").get<double>(), 1e-6 * softmax);
      if (i % 5 == 1) {
        EXPECT_EQ(entry.at("schedule"), "back:1=hydra-cosine");
        EXPECT_EQ(entry.at("path"), "composed, fused cpu");
        const double bound = entries[i + 2].at("items_per_second");
        EXPECT_NEAR(entry.at("share_of_bound").get<double>() * bound,
                    entry.at("items_per_second").get<double>(), 1e-6 * bound);
      }
      const std::vector<std::string> kinds{"schedule", "schedule", "untapped", "without attention",
                                           "products"};
      EXPECT_EQ(entry.at("kind"), kinds[i % 5]);
    }
  }
}

TEST_F(BenchCommand, ADecoderReadsAsManyTokensAsAreAskedFor) {
  const std::string decoders = (source_folder() / "tests/golden/decoders").string();
  for (const auto& [asked, read] : {std::pair{12, 12}, std::pair{100, 48}}) { // mistral has 48 positions
    const Outcome outcome = hydrascope("bench model --model '" + decoders +
                                       "/mistral' --batch 2 --runs 1 --warm-ups 0 --threads 1 "
                                       "--schedule elu --json --tokens " +
                                       std::to_string(asked));
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    const json entries = json::parse(outcome.output);
    ASSERT_EQ(entries.size(), 4U);
    for (const json& entry : entries) EXPECT_EQ(entry.at("N"), read);
  }
}

TEST_F(BenchCommand, ModelIsTimedAlone) {
  const std::string command =
      "bench model --model " + tiny_model("vit") +
      " --batch 1 --runs 2 --warm-ups 1 --threads 1 --schedule softmax --schedules-only";
  const Outcome outcome = hydrascope(command + " --json");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const json entries = json::parse(outcome.output);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].at("schedule"), "softmax");
  EXPECT_GT(entries[0].at("items_per_second"), 0);
  EXPECT_FALSE(entries[0].contains("share_of_bound"));
  EXPECT_EQ(entries[0].at("times_softmax"), 1);
  EXPECT_NE(hydrascope(command).output.find("—"), std::string::npos); // of the bound
}

TEST_F(BenchCommand, WhatDoesNotFitIsLeftOutOrRefused) {
  const std::string wide = "bench kernels --kernels taylor --head-width 4096 --heads 4096 --tokens 16 ";
  const Outcome outcome = hydrascope(wide + "--seconds 0.01 --dtype float32 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const json entry = json::parse(outcome.output).at(0);
  EXPECT_NE(entry.at("skipped").get<std::string>().find("GiB are free"), std::string::npos) << entry;
  expect_error("bench model --batch 1,2147483647 --model " + tiny_model("vit"), 1,
               "--batch 2147483647: needs ");
}

TEST_F(BenchCommand, BadInputIsNamed) {
  expect_error("bench model --model nowhere", 1, "nowhere");
  expect_error("bench model --device cuda:99 --model " + tiny_model("vit"), 1, "--device cuda:99");
  expect_error("bench model --schedule back:99=hydra-cosine --model " + tiny_model("vit"), 2, "99");

  expect_error("bench kernels --kernels hydra", 2, "hydra-cosine");
  expect_error("bench kernels --dtype float64", 2, "float64");
  expect_error("bench kernels --head-width 1000000 --tokens 16", 2,
               "--head-width: 1000000 is not from 1 to 4096");
}

} // namespace
