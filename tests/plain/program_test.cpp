#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/process.h"
#include "engine/base/program.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

using namespace std::chrono_literals;
constexpr auto ample = 60s;

ProgramResult shell(const std::string& script, std::string_view input = {}) {
  return run_program({"sh", "-c", script}, input, ample, {});
}

TEST(Program, IsFoundInTheFoldersOfPath) {
  const std::string before = environment("PATH");
  const test::ScratchFolder folder;
  setenv("PATH", ("/nowhere::" + folder.path().string()).c_str(), 1);
  EXPECT_EQ(find_program("owl"), "");
  folder.write("owl", "#!/bin/sh\n");
  EXPECT_EQ(find_program("owl"), "") << "it cannot be executed";
  std::filesystem::permissions(folder / "owl", std::filesystem::perms::owner_all);
  EXPECT_EQ(find_program("owl"), folder / "owl");
  std::filesystem::create_directory(folder / "barn");
  EXPECT_EQ(find_program("barn"), "") << "a folder is no program";
  setenv("PATH", before.c_str(), 1);
}

TEST(Program, GivesInputAndTakesBothOutputs) {
  std::string input(3 << 20, 'a');
  input[5] = '\0';
  const ProgramResult result = shell("cat; echo remark >&2; exit 7", input);
  EXPECT_EQ(result.status, 7);
  EXPECT_TRUE(result.output == input);
  EXPECT_EQ(result.errors, "remark\n");
}

TEST(Program, InputThatIsNotReadIsNoError) {
  EXPECT_EQ(shell("exec <&-; exit 0", std::string(1 << 20, 'a')).status, 0);
}

TEST(Program, ASignalIsAStatus) { EXPECT_EQ(shell("kill -TERM $$").status, 128 + 15); }

TEST(Program, ReturnsWhileItsBackgroundGoesOn) {
  const ProgramResult result = shell("sleep 30 & echo $!");
  EXPECT_EQ(result.status, 0);
  const pid_t left = std::stoi(result.output);
  EXPECT_EQ(kill(left, 0), 0);
  kill(left, SIGKILL);
}

TEST(Program, InheritsNoOpenFile) {
  const int file = open("/dev/null", O_RDONLY); // without O_CLOEXEC
  ASSERT_GT(file, 2);
  EXPECT_EQ(shell("if [ -e /proc/self/fd/" + std::to_string(file) + " ]; then echo open; fi").output, "");
  close(file);
}

TEST(Program, IsKilledWithItsChildrenAtTheLimit) {
  const test::ScratchFolder folder;
  const std::string file = (folder / "held").string(); // open for writing in the program and its child
  ASSERT_EQ(mkfifo(file.c_str(), S_IRWXU), 0);
  const int reader = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  try {
    run_program({"sh", "-c", "exec 3>'" + file + "'; sleep 600 & wait"}, {}, 5s, {});
    ADD_FAILURE() << "it came to an end";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "sh: gave no answer within 5 s");
  }
  pollfd end{.fd = reader, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&end, 1, static_cast<int>(std::chrono::milliseconds(ample).count())), 1);
  EXPECT_EQ(end.revents, POLLHUP);
  close(reader);
}

TEST(Program, IsKilledWhenAStopIsRequested) {
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(run_program({"sleep", "60"}, {}, ample, source.get_token()), Cancelled);
}

TEST(Program, SaysThatItIsNotThere) {
  try {
    run_program({"no-such-program"}, {}, ample, {});
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("no-such-program: cannot be started", 0), 0u) << error.what();
  }
}

} // namespace
} // namespace hydrascope
