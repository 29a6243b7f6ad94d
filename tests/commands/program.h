// Runs the built program as a user does, in a folder of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "tests/support/checkout.h"

namespace hydrascope::test {

namespace fs = std::filesystem;

inline const std::string picture = (deps_folder() / "examples/chelsea.png").string();

inline std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// One float32 tensor of a safetensors file (8-byte header length, JSON, data).
inline std::vector<float> tensor(const std::string& file, const std::string& name) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const auto header = nlohmann::json::parse(file.substr(8, length));
  const auto begin = header.at(name)["data_offsets"][0].get<std::size_t>();
  const auto end = header.at(name)["data_offsets"][1].get<std::size_t>();
  std::vector<float> values((end - begin) / sizeof(float));
  std::memcpy(values.data(), file.data() + 8 + length + begin, end - begin);
  return values;
}

struct Outcome {
  int status = -1;
  std::string output, errors;
};

class ProgramTest : public testing::Test {
protected:
  ProgramTest() : folder_(fs::temp_directory_path() / ("hydrascope-command-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~ProgramTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  Outcome hydrascope(const std::string& arguments) const {
    const std::string errors = at("errors.txt");
    const int status = std::system(
        ("'" + program().string() + "' " + arguments + " >" + at("output.txt") + " 2>" + errors).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(at("output.txt")), bytes_of(errors)};
  }

  void expect_error(const std::string& arguments, int status, const std::string& mentioned) const {
    const Outcome outcome = hydrascope(arguments);
    EXPECT_EQ(outcome.status, status) << arguments;
    EXPECT_EQ(outcome.errors.rfind("error: ", 0), 0u) << outcome.errors;
    EXPECT_NE(outcome.errors.find(mentioned), std::string::npos) << outcome.errors;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  }

  fs::path folder_;
};

} // namespace hydrascope::test
