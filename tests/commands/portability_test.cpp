// The program where something is missing that most machines have: a home folder that can be written, fonts,
// the newest processor's instructions.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"
#include "tests/support/hub_server.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;
using testing::EndsWith, testing::HasSubstr;

class Portability : public ProgramTest {
protected:
  void expect_written(const std::string& arguments, const std::string& name) const {
    const Outcome outcome = hydrascope(arguments + " " + at(name));
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.errors;
    EXPECT_GT(bytes_of(at(name)).size(), 1000u) << arguments;
  }
};

// No folder can be made below /proc, not even by root.
TEST_F(Portability, WorksWhereTheHomeFolderCannotBeWritten) {
  const ScopedEnvironment home({{"HOME", "/proc/none"},
                                {"XDG_CONFIG_HOME", ""},
                                {"XDG_DATA_HOME", ""},
                                {"XDG_CACHE_HOME", ""},
                                {"XDG_STATE_HOME", ""},
                                {"HF_HOME", ""},
                                {"HF_HUB_CACHE", ""}});
  EXPECT_EQ(hydrascope("run --text 'The cat sat.'").status, 0);
  expect_written("figure focus --image " + picture + " -o", "focus.pdf");
  std::ofstream(at("lines.txt")) << "the cat sat\nthe dog ran\nall of it\nmore text here\n";
  expect_written("distill --kernel hedgehog --no-adapter --data " + at("lines.txt") + " --epochs 1 -o",
                 "maps.safetensors");
  for (const std::string name : {"cat", "dog"}) {
    fs::create_directories(folder_ / "pictures" / name);
    for (const std::string copy : {"a.png", "b.png"})
      fs::copy_file(picture, folder_ / "pictures" / name / copy);
  }
  // What the frozen layers compute is kept on disk.
  const std::string tail = "finetune --replace back:1=hydra-cosine --data " + at("pictures") +
                           " --epochs 1 --batch 2 --validation-share 0.5 -o";
  expect_error(tail + " " + at("tail.safetensors"), 1, "set XDG_CACHE_HOME to a folder that can be written");
  {
    const ScopedEnvironment cache("XDG_CACHE_HOME", at("cache"));
    expect_written(tail, "tail.safetensors");
  }
  expect_written("--size 640x400 --text 'The cat sat.' --screenshot", "window.png");
}

// What the command line starts sees an empty folder in place of the system's fonts.
TEST_F(Portability, DrawsWhereThereIsNoFont) {
  fs::create_directories(folder_ / "empty");
  std::ofstream(at("fonts.conf")) << "<?xml version=\"1.0\"?>\n<fontconfig></fontconfig>\n";
  const ScopedEnvironment none("FONTCONFIG_FILE", at("fonts.conf"));
  const auto hiding = [&](const std::string& options) {
    return fmt::format("unshare {} sh -c 'mount --bind \"$0\" /usr/share/fonts && exec \"$@\"' '{}' ",
                       options, at("empty"));
  };
  const auto works = [](const std::string& command) {
    return std::system((command + "true 2>/dev/null").c_str()) == 0;
  };
  std::string without = hiding("--mount");
  if (!works(without)) without = hiding("--mount --map-root-user");
  if (!works(without)) GTEST_SKIP() << "no folder can be mounted over the system's fonts here";
  const auto draw = [&](const std::string& arguments) {
    const std::string command = fmt::format("{} '{}' {} >'{}' 2>'{}'", without, program().string(), arguments,
                                            at("output.txt"), at("errors.txt"));
    EXPECT_EQ(std::system(command.c_str()), 0) << arguments << "\n" << bytes_of(at("errors.txt"));
    return bytes_of(at("output.txt"));
  };
  const json checks = json::parse(draw("doctor --json"));
  const auto fonts = std::ranges::find(checks, "fonts", [](const json& check) { return check.at("name"); });
  ASSERT_NE(fonts, checks.end());
  EXPECT_THAT(fonts->at("found").get<std::string>(), HasSubstr("font not found: Inter"));
  EXPECT_THAT(fonts->at("remedy").get<std::string>(), HasSubstr("fonts-inter"));
  draw("figure weights --text 'The cat sat.' -o " + at("weights.svg"));
  EXPECT_NE(bytes_of(at("weights.svg")).find(">cat</text>"), std::string::npos);
  draw("figure weights --text 'The cat sat.' -o " + at("weights.pdf"));
  EXPECT_EQ(bytes_of(at("weights.pdf")).rfind("%PDF", 0), 0u);
  draw("--size 640x400 --text 'The cat sat.' --screenshot " + at("window.png"));
  EXPECT_GT(bytes_of(at("window.png")).size(), 10000u); // not an empty window
}

TEST_F(Portability, UsesThePlainLoopsWhenTold) {
  const auto hidden = [&](const std::string& name) {
    const Outcome outcome = hydrascope(
        "run --text 'The cat sat on the mat.' --kernel hedgehog --tensors hidden "
        "--output " +
        at(name));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return tensor(bytes_of(at(name)), "hidden.6");
  };
  const auto processor = [&] {
    for (const json& check : json::parse(hydrascope("doctor --json").output))
      if (check.at("name") == "processor") return check.at("found").get<std::string>();
    return std::string();
  };
  if (processor().ends_with(", plain loops")) GTEST_SKIP() << "this is the oldest processor";
  const std::vector<float> best = hidden("best.safetensors");
  const ScopedEnvironment oldest("HYDRASCOPE_PROCESSOR", "plain");
  EXPECT_THAT(processor(), EndsWith(", plain loops"));
  const std::vector<float> plain = hidden("plain.safetensors");
  EXPECT_NE(plain, best);
  EXPECT_THAT(plain, testing::Pointwise(testing::FloatNear(1e-4F), best));
  const ScopedEnvironment unknown("HYDRASCOPE_PROCESSOR", "sse9");
  for (const char* arguments : {"kernels", "run --text 'The cat sat.'", "--screenshot window.png"})
    expect_error(arguments, 2, "HYDRASCOPE_PROCESSOR: \"sse9\" is not a kind of processor");
}

} // namespace
