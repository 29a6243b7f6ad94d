// hydrascope attend on long sequences: memory stays linear.
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

// q, k, v (1,1,N,8) of random numbers.
void write_tokens(const fs::path& file, std::int64_t tokens) {
  const std::int64_t bytes = tokens * 8 * 4;
  nlohmann::json header;
  for (int i = 0; i < 3; ++i)
    header[std::string(1, "qkv"[i])] = {
        {"dtype", "F32"}, {"shape", {1, 1, tokens, 8}}, {"data_offsets", {i * bytes, (i + 1) * bytes}}};
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(3 * tokens * 8));
  for (float& number : numbers) number = normal(random);
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
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  EXPECT_LT(children.ru_maxrss, 1024 * 1024) << "KiB, the largest of all programs run";
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
