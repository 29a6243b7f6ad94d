// `hydrascope --record` as a user runs it.
#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;

class RecordCommand : public ProgramTest {
protected:
  std::string script(const std::string& text) const {
    std::ofstream(at("script.txt")) << text;
    return at("script.txt");
  }
  std::string recording(const std::string& text) const {
    return "--record " + at("window.webp") + " --script " + script(text) +
           " --size 640x400 --text 'The cat sat.'";
  }
  // The number of frames of an animated WebP, each in a chunk ANMF.
  static int frames(const std::string& bytes) {
    int count = 0;
    for (auto at = bytes.find("ANMF"); at != std::string::npos; at = bytes.find("ANMF", at + 4)) ++count;
    return count;
  }
};

TEST_F(RecordCommand, WritesWhatTheScriptDoes) {
  const Outcome still = hydrascope(recording("hold 1\n"));
  ASSERT_EQ(still.status, 0) << still.errors;
  const Outcome outcome =
      hydrascope(recording("# the palette\n"
                           "caption Search\n"
                           "press Ctrl+P\n"
                           "type cos\n"
                           "press Escape\n"
                           "point focus 0.5 0.5\n"
                           "click\n"
                           "caption\n"
                           "hold 0.5\n"));
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const std::string bytes = bytes_of(at("window.webp"));
  EXPECT_EQ(bytes.substr(0, 4), "RIFF");
  EXPECT_EQ(bytes.substr(8, 4), "WEBP");
  // The caption, the palette, three letters, the palette's end, the pointer's way.
  EXPECT_GE(frames(bytes), 10);
}

TEST_F(RecordCommand, NamesTheLineOfAWrongStepAndWritesNothing) {
  const auto expect = [&](const std::string& text, const std::string& mentioned) {
    expect_error(recording(text), 2, mentioned);
  };
  expect("hold 1\n\nprss Ctrl+P\n", "script.txt:3: there is no step prss; did you mean press?");
  expect("press\n", "script.txt:1");
  expect("click here\n", "takes no argument");
  expect("# nothing\n", "has no step");
  expect("action view.layout.compar\n", "view.layout.compare");
  expect("hold soon\n", "seconds");
  expect("press Kontrol+P\n", "no key");
  expect("point nowhere 0.5 0.5\n", "nowhere is not visible");
  EXPECT_FALSE(fs::exists(at("window.webp")));
}

TEST_F(RecordCommand, ChecksItsOptions) {
  expect_error("--record window.gif --script " + script("hold 1\n"), 2, "window.webp");
  expect_error("--record window.webp", 2, "--script");
  expect_error("--script " + script("hold 1\n"), 2, "--record");
  expect_error("--size 640x400", 2, "--screenshot or --record");
  expect_error("--record window.webp --script missing.txt", 1, "missing.txt");
}

} // namespace
