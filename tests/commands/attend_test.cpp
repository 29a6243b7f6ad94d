// hydrascope attend on long sequences: memory stays linear.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace hydrascope::test {
namespace {

using AttendCommand = ProgramTest;

// q, k, v (1,1,N,8) of random numbers of this standard deviation, within ±`most`.
void write_tokens(const fs::path& file, std::int64_t tokens, float deviation = 1, float most = 1e30F) {
  const std::int64_t bytes = tokens * 8 * 4;
  nlohmann::json header;
  for (int i = 0; i < 3; ++i)
    header[std::string(1, "qkv"[i])] = {
        {"dtype", "F32"}, {"shape", {1, 1, tokens, 8}}, {"data_offsets", {i * bytes, (i + 1) * bytes}}};
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> numbers(static_cast<std::size_t>(3 * tokens * 8));
  for (float& number : numbers) number = std::clamp(normal(random), -most, most);
  std::ofstream stream(file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(&length), sizeof length);
  stream << text;
  stream.write(reinterpret_cast<const char*>(numbers.data()), 3 * bytes);
}

// The N×N weights would take 4 GiB; softmax, too, takes its rows in tiles.
TEST_F(AttendCommand, MemoryDoesNotGrowWithTheSquareOfTokens) {
  write_tokens(at("long.safetensors"), 32768);
  // Three times the largest difference of Σ w·v and the output that is measured: outputs of linear-cosine and
  // hydra-cosine are sums over all tokens, the others' are means.
  struct Case {
    const char* kernel;
    double tolerance;
  };
  for (const auto& [kernel, tolerance] :
       {Case{"linear-cosine", 1.5e-3}, Case{"hydra-cosine", 4e-5}, Case{"hydra-mean", 2.5e-7},
        Case{"hydra-tanh-softmax", 2.5e-7}, Case{"elu", 2.5e-7}, Case{"relu", 2.5e-7}, Case{"t2r", 2.5e-7},
        Case{"performer", 6e-7}, Case{"cosformer", 2.5e-7}, Case{"exp-t1", 2.5e-7}, Case{"taylor", 2.5e-7},
        Case{"hedgehog", 2.5e-7}, Case{"hedgehog-softmax", 2.5e-7}, Case{"local-window", 2.5e-7}}) {
    const Outcome outcome =
        hydrascope(fmt::format("attend {} --input {} --output {} --weights --rows 32767 --json", kernel,
                               at("long.safetensors"), at("out.safetensors")));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    const auto report = nlohmann::json::parse(outcome.output);
    EXPECT_EQ(report.at("checked_rows"), 1);
    EXPECT_LT(report.at("check").get<double>(), tolerance) << kernel;
  }
  // Keys that differ by orders of magnitude: φ_K depends on the query, of which one is asked for. (Ten times
  // the difference of 4,096 tokens.)
  write_tokens(at("wide.safetensors"), 32768, 40);
  const Outcome outcome = hydrascope("attend hydra-tanh-softmax --causal --input " + at("wide.safetensors") +
                                     " --output " + at("out.safetensors") + " --weights --rows 32767 --json");
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_LT(nlohmann::json::parse(outcome.output).at("check").get<double>(), 2e-3);
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  EXPECT_LT(children.ru_maxrss, 1024 * 1024) << "KiB, the largest of all programs run";
}

// Hydra's weights are sums of the matrices that are checked, and are themselves not: the answer says so.
TEST_F(AttendCommand, SaysWhatIsChecked) {
  write_tokens(at("q.safetensors"), 9);
  const auto answer = [&](const std::string& kernel, const std::string& more) {
    const Outcome outcome = hydrascope("attend " + kernel + " --input " + at("q.safetensors") + " --output " +
                                       at("x.safetensors") + " --weights" + more);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return outcome.output;
  };
  EXPECT_NE(answer("hydra-cosine", "").find("the D matrices"), std::string::npos);
  EXPECT_NE(answer("hydra-cosine", "").find("not checked"), std::string::npos);
  EXPECT_NE(answer("elu", "").find("|weights × V − output|"), std::string::npos);
  EXPECT_EQ(answer("elu", "").find("not checked"), std::string::npos);
  const auto hydra = nlohmann::json::parse(answer("hydra-mean", " --json")),
             elu = nlohmann::json::parse(answer("elu", " --json"));
  EXPECT_NE(hydra.at("checked"), elu.at("checked"));
  EXPECT_TRUE(hydra.contains("weights"));
  EXPECT_FALSE(elu.contains("weights"));
  // What is said is so: the sum over a head's features times V is not Hydra's output.
  answer("hydra-cosine", "");
  const std::string written = bytes_of(at("x.safetensors")), given = bytes_of(at("q.safetensors"));
  const auto output = tensor(written, "output"), weights = tensor(written, "weights"), v = tensor(given, "v");
  const std::size_t tokens = 9, heads = weights.size() / (tokens * tokens),
                    d = output.size() / (tokens * heads);
  float worst = 0;
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t i = 0; i < tokens; ++i)
      for (std::size_t f = 0; f < d; ++f) {
        float sum = 0;
        for (std::size_t j = 0; j < tokens; ++j)
          sum += weights[(h * tokens + i) * tokens + j] * v[(h * tokens + j) * d + f];
        worst = std::max(worst, std::abs(sum - output[(h * tokens + i) * d + f]));
      }
  EXPECT_GT(static_cast<double>(worst), 100 * hydra.at("check").get<double>());
}

// Sums of finite numbers overflow.
TEST_F(AttendCommand, ResultsThatAreNotFiniteAreNotWritten) {
  write_tokens(at("large.safetensors"), 9, 1e38F, 3e38F);
  const std::string files = " --input " + at("large.safetensors") + " --output " + at("x.safetensors");
  expect_error("attend elu" + files, 1, "elu: its output holds numbers that are not finite; use smaller");
  expect_error("attend elu --weights" + files, 1, "elu: its output holds numbers that are not finite");
  EXPECT_FALSE(fs::exists(at("x.safetensors")));
}

TEST_F(AttendCommand, BadInputIsOneLineAndLeavesNothing) {
  write_tokens(at("q.safetensors"), 9);
  const std::string files = " --input " + at("q.safetensors") + " --output " + at("x.safetensors");
  expect_error("attend linear-cosine:heads=3" + files, 2, "heads=3 does not divide");
  expect_error("attend performer:features=0" + files, 2, "features");
  expect_error("attend poly-nl" + files, 2, "x (B,N,D)");
  expect_error("attend cosformer:m=3 --causal" + files, 2, "more than m=3");
  expect_error("attend local-window --grid 3x4" + files, 2, "--grid");
  expect_error("attend local-window:mode=spiral" + files, 2, "spiral");
  expect_error("attend softmax --device cuda:9" + files, 1, "--device cuda:9");
  EXPECT_FALSE(fs::exists(at("x.safetensors")));
}

} // namespace
} // namespace hydrascope::test
