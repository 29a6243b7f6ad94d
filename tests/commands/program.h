// Runs the built program as a user does, in a folder of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
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

// The bytes of one tensor of a safetensors file (8-byte header length, JSON, data).
inline std::string tensor_bytes(const std::string& file, const std::string& name) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const auto header = nlohmann::json::parse(file.substr(8, length));
  const auto begin = header.at(name)["data_offsets"][0].get<std::size_t>();
  const auto end = header.at(name)["data_offsets"][1].get<std::size_t>();
  return file.substr(8 + length + begin, end - begin);
}

// A float32 tensor.
inline std::vector<float> tensor(const std::string& file, const std::string& name) {
  const std::string bytes = tensor_bytes(file, name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Finite float16 numbers.
inline std::vector<double> from_halves(std::string_view bytes) {
  std::vector<double> values;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i, sizeof bits);
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    values.push_back((bits & 0x8000) != 0 ? -magnitude : magnitude);
  }
  return values;
}

// A float16 tensor.
inline std::vector<double> halves(const std::string& file, const std::string& name) {
  return from_halves(tensor_bytes(file, name));
}

// All numbers of a safetensors file whose tensors are float16.
inline std::vector<double> all_halves(const std::string& file) {
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  return from_halves(std::string_view(file).substr(8 + header));
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
