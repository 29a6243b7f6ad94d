// What helps at the shell: doctor, --version, completions, the manual page, and what a wrong word says.
#include <map>

#include <nlohmann/json.hpp>

#include "tests/commands/program.h"
#include "tests/support/hub_server.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

class ShellCommand : public ProgramTest {
protected:
  // What bash offers after the words of a command line.
  std::string completed(const std::string& words) const {
    const std::string script = at("complete.sh");
    std::ofstream(script) << hydrascope("completion bash").output << "COMP_WORDS=(" << words << ")\n"
                          << "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                          << "_hydrascope\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    EXPECT_EQ(std::system(("bash '" + script + "' >'" + at("offered.txt") + "'").c_str()), 0);
    return "\n" + bytes_of(at("offered.txt"));
  }
};

TEST_F(ShellCommand, DoctorNamesTheMachineAndTheModels) {
  const Outcome outcome = hydrascope("doctor --json");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  std::map<std::string, json> checks;
  for (const json& check : json::parse(outcome.output)) checks[check.at("name")] = check;
  // smollm2 is there where set-up could fetch it.
  EXPECT_TRUE(checks.at("bundled models").at("found").get<std::string>().starts_with("vit-small, minilm"));
  EXPECT_EQ(checks.at("bundled models").at("state"), "ok");
  EXPECT_EQ(checks.at("LibTorch").at("found"), "2.11.0");
  EXPECT_NE(checks.at("processor").at("found").get<std::string>().find("loops"), std::string::npos);
  EXPECT_EQ(checks.at("program's files").at("found"), source_folder().string());
  EXPECT_EQ(checks.at("fonts").at("found"), "Inter, JetBrains Mono");
}

TEST_F(ShellCommand, DoctorSaysWhatIsMissing) {
  setenv("HYDRASCOPE_DEPS", at("empty").c_str(), 1);
  const Outcome bare = hydrascope("doctor");
  unsetenv("HYDRASCOPE_DEPS");
  EXPECT_EQ(bare.status, 1);
  EXPECT_NE(bare.output.find("→ run tools/setup"), std::string::npos) << bare.output;
  EXPECT_EQ(bare.errors.rfind("error: bundled models: none", 0), 0u) << bare.errors;
}

TEST_F(ShellCommand, DoctorSaysWhereAWindowWouldOpen) {
  const std::string without =
      "/usr/bin/env -u DISPLAY -u WAYLAND_DISPLAY '" + program().string() + "' doctor --json";
  ASSERT_EQ(std::system((without + " >" + at("doctor.json") + " 2>" + at("doctor.txt")).c_str()), 0);
  EXPECT_EQ(bytes_of(at("doctor.txt")), "");
  std::map<std::string, json> checks;
  for (const json& check : json::parse(bytes_of(at("doctor.json")))) checks[check.at("name")] = check;
  EXPECT_EQ(checks.at("display").at("found"), "none");
  EXPECT_EQ(checks.at("clipboard").at("found"), "none");
  EXPECT_EQ(checks.at("clipboard").at("state"), "absent");
}

TEST_F(ShellCommand, VersionNamesLibraryProcessorAndGpu) {
  const Outcome outcome = hydrascope("--version");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output.rfind("hydrascope ", 0), 0u);
  for (const char* part : {"\nLibTorch 2.11.0\n", " loops\n", "\nGPU: "})
    EXPECT_NE(outcome.output.find(part), std::string::npos) << outcome.output;
}

// How long OpenMP's threads spin, each time that libgomp was loaded.
TEST_F(ShellCommand, OnlyTheWindowsThreadsDoNotSpin) {
  const ScopedEnvironment usual({{"OMP_DISPLAY_ENV", "verbose"},
                                 {"OMP_WAIT_POLICY", ""},
                                 {"GOMP_SPINCOUNT", ""},
                                 {"HYDRASCOPE_RESTARTED", ""}});
  const auto spins = [&](const std::string& arguments) {
    const Outcome outcome = hydrascope(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    std::vector<std::string> found;
    std::istringstream lines(outcome.errors);
    for (std::string line; std::getline(lines, line);)
      if (const auto value = line.find("GOMP_SPINCOUNT = "); value != std::string::npos)
        found.push_back(line.substr(value + 17));
    return found;
  };
  const auto once = [](const char* count) { return std::vector<std::string>{count}; };
  EXPECT_EQ(spins("kernels"), once("'300000'"));
  // The restart precedes the libraries' constructors.
  EXPECT_EQ(spins("--screenshot '" + at("window.png") + "'"), once("'0'"));
  EXPECT_EQ(spins("--no-adapter kernels"), (std::vector<std::string>{"'0'", "'300000'"})); // a wrong guess
  const ScopedEnvironment own("OMP_WAIT_POLICY", "active");                                // the user's
  const std::string window = "--screenshot '" + at("window.png") + "'";
  for (const std::string& arguments : {window, std::string("kernels")}) {
    const std::vector<std::string> found = spins(arguments);
    ASSERT_EQ(found.size(), 1u) << arguments;
    EXPECT_GT(found.front().size(), std::string("'300000'").size()); // as good as for ever
  }
  // The user's, in a program that a window started.
  const ScopedEnvironment inherited("HYDRASCOPE_RESTARTED", "early");
  EXPECT_EQ(spins("kernels").size(), 1u);
}

TEST_F(ShellCommand, AnInstalledProgramStarts) {
  const std::string build = program().parent_path().string(), prefix = at("prefix");
  const std::string install = "cmake --install '" + build + "' --component program --prefix '" + prefix + "'";
  ASSERT_EQ(std::system((install + " >" + at("install.txt") + " 2>&1").c_str()), 0)
      << bytes_of(at("install.txt"));
  const std::string start = "'" + prefix + "/bin/hydrascope' --version";
  EXPECT_EQ(std::system((start + " >" + at("version.txt") + " 2>&1").c_str()), 0)
      << bytes_of(at("version.txt"));
  EXPECT_EQ(bytes_of(at("version.txt")), hydrascope("--version").output);
}

TEST_F(ShellCommand, BashCompletesCommandsKindsOptionsAndKernels) {
  EXPECT_EQ(completed("hydrascope ki"), "\n\n");
  EXPECT_EQ(completed("hydrascope ker"), "\nkernels\n");
  EXPECT_EQ(completed("hydrascope bench sc"), "\nscaling\n");
  EXPECT_EQ(completed("hydrascope figure rooflin"), "\nroofline\n");
  EXPECT_EQ(completed("hydrascope run --value-w"), "\n--value-weighted\n");
  EXPECT_EQ(completed("hydrascope run --text cat --kernel hydra-cosine-"), "\nhydra-cosine-ln\n");
  EXPECT_NE(completed("hydrascope ''").find("\ndoctor\n"), std::string::npos);
}

TEST_F(ShellCommand, OtherShellsCompletionsNameEveryCommand) {
  for (const char* shell : {"zsh", "fish"}) {
    const std::string text = hydrascope(std::string("completion ") + shell).output;
    for (const char* word : {"distill", "value-weighted", "relu-squared", "interact"})
      EXPECT_NE(text.find(word), std::string::npos) << shell << ": " << word;
  }
  expect_error("completion tcsh", 2, "tcsh");
}

TEST_F(ShellCommand, ManualHasEveryCommandAndIsValid) {
  const std::string page = hydrascope("manual").output;
  for (const char* part : {".TH HYDRASCOPE 1", ".SH \"HYDRASCOPE bench interact\"", "\\-\\-image\\-size"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  std::ofstream(at("hydrascope.1")) << page;
  if (std::system("command -v groff >/dev/null") != 0) GTEST_SKIP() << "groff is not installed";
  const std::string check =
      "groff -k -man -ww -z '" + at("hydrascope.1") + "' 2>'" + at("warnings.txt") + "'";
  EXPECT_EQ(std::system(check.c_str()), 0);
  EXPECT_EQ(bytes_of(at("warnings.txt")), "");
}

TEST_F(ShellCommand, AWrongWordIsAnsweredWithTheNearestRightOne) {
  expect_error("rnu", 2, "did you mean run?");
  expect_error("run --imag cat.png", 2, "did you mean --image?");
  expect_error("bench kernel", 2, "did you mean kernels?");
  expect_error("figure focos --image " + picture + " -o " + at("a.svg"), 2, "the nearest is focus");
  expect_error("run --zzzzzzzz", 2, "see hydrascope --help");
}

} // namespace
