// `hydrascope kernels`: what is known of each, and where it runs here.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

class KernelsCommand : public ProgramTest {};

TEST_F(KernelsCommand, PrintsPaperAndEquationOfEach) {
  const Outcome outcome = hydrascope("kernels");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const json kernels = json::parse(hydrascope("kernels --json").output);
  ASSERT_GT(kernels.size(), 20U);
  for (const json& kernel : kernels) {
    const std::string source = kernel["source"], name = kernel["name"];
    ASSERT_FALSE(source.empty()) << name;
    std::istringstream lines(outcome.output);
    bool found = false;
    for (std::string line; std::getline(lines, line);)
      found = found || (line.starts_with(name + " ") && line.find(source) != std::string::npos);
    EXPECT_TRUE(found) << name << ": " << source;
  }
}

// As --device finds the machine.
TEST_F(KernelsCommand, NamesOnlyDevicesThatAreHere) {
  const json kernels = json::parse(hydrascope("kernels --json").output);
  const Outcome on_cuda = hydrascope("run --text a --device cuda --json");
  const bool cuda = on_cuda.status == 0;
  const std::string table = hydrascope("kernels").output;
  EXPECT_EQ(table.find("not cuda: ") == std::string::npos, cuda) << on_cuda.errors;
  for (const json& kernel : kernels) {
    EXPECT_EQ(kernel["devices"], cuda ? json({"cpu", "cuda"}) : json({"cpu"})) << kernel["name"];
    EXPECT_EQ(kernel["implemented_for"], json({"cpu", "cuda"})) << kernel["name"];
    EXPECT_EQ(kernel["no_cuda"].is_null(), cuda);
    if (cuda) continue;
    const std::string why = kernel["no_cuda"];
    EXPECT_NE(on_cuda.errors.find(why), std::string::npos) << why << " against " << on_cuda.errors;
    EXPECT_NE(table.find("not cuda: " + why), std::string::npos);
  }
}

TEST_F(KernelsCommand, WhatCannotBePrintedIsAnError) {
  for (const char* const words : {"kernels", "kernels --json", "--help", "kernels --help"}) {
    const std::string errors = at("errors.txt");
    const int status =
        std::system(("'" + program().string() + "' " + words + " >/dev/full 2>" + errors).c_str());
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1) << words;
    EXPECT_EQ(bytes_of(errors).rfind("error: standard output: cannot be written to its end; ", 0), 0U)
        << words << ": " << bytes_of(errors);
  }
}

} // namespace
