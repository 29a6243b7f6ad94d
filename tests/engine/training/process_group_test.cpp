// Several processes on this machine: they agree, they compute what one computes, and none is left waiting.
#include "engine/training/distributed/process_group.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <map>
#include <sstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/paths.h"
#include "engine/base/process.h"
#include "tests/support/checkout.h"
#include "tests/support/free_port.h"

namespace {

using namespace hydrascope;
using namespace hydrascope::training;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

// What one process printed and how it ended.
struct Ending {
  int status = 0; // of waitpid
  std::string output;

  bool done() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
  // The numbers after each line's first word.
  std::vector<std::vector<double>> numbers(const std::string& name) const {
    std::vector<std::vector<double>> found;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string word;
      words >> word;
      if (word != name) continue;
      found.emplace_back();
      while (words >> word) found.back().push_back(std::strtod(word.c_str(), nullptr));
    }
    return found;
  }
};

class Processes : public testing::Test {
protected:
  Processes() : folder_(fs::temp_directory_path() / ("hydrascope-members-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Processes() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void start(int rank, int size, const std::string& task, int victim = -1) {
    const std::string program = (test::program().parent_path() / "process_group_member").string();
    std::vector<std::string> words{program, task, std::to_string(victim)};
    std::vector<std::string> variables{"OMP_NUM_THREADS=1",
                                       "RANK=" + std::to_string(rank),
                                       "WORLD_SIZE=" + std::to_string(size),
                                       "MASTER_ADDR=127.0.0.1",
                                       "MASTER_PORT=" + std::to_string(port_),
                                       "TSAN_OPTIONS=" + environment("TSAN_OPTIONS")};
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> list;
      for (std::string& text : texts) list.push_back(text.data());
      list.push_back(nullptr);
      return list;
    };
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output(rank).c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t process = 0;
    const int failure = posix_spawn(&process, program.c_str(), &actions, nullptr, pointers(words).data(),
                                    pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    ASSERT_EQ(failure, 0) << program << ": " << std::strerror(failure); // end_of() and kill() throw then
    running_[rank] = process;
  }

  Ending end_of(int rank) {
    Ending ending;
    EXPECT_EQ(waitpid(running_.at(rank), &ending.status, 0), running_.at(rank));
    running_.erase(rank);
    ending.output = read_text_file(output(rank));
    return ending;
  }

  void kill(int rank) const { ::kill(running_.at(rank), SIGKILL); }

  std::vector<Ending> run(int size, const std::string& task, int victim = -1) {
    port_ = test::free_port();
    for (int rank = 0; rank < size; ++rank) start(rank, size, task, victim);
    std::vector<Ending> endings;
    for (int rank = 0; rank < size; ++rank) endings.push_back(end_of(rank));
    return endings;
  }

  fs::path output(int rank) const { return folder_ / std::to_string(rank); }

  fs::path folder_;
  int port_ = test::free_port();
  std::map<int, pid_t> running_;
};

class ProcessGroupOf : public Processes, public testing::WithParamInterface<int> {};

TEST_P(ProcessGroupOf, SumsAndSharesWhatAllHave) {
  const int size = GetParam();
  const std::vector<Ending> endings = run(size, "exchange");
  for (const Ending& ending : endings) {
    ASSERT_TRUE(ending.done()) << ending.output;
    EXPECT_EQ(ending.output, endings[0].output); // to the last bit
  }
  const double ranks = size * (size - 1) / 2.0, ones = ranks + size;
  const auto sums = endings[0].numbers("sum");
  ASSERT_EQ(sums.size(), 5u);
  for (const double value : sums[0]) EXPECT_NEAR(value, ranks + 0.1 * size, 1e-6);
  EXPECT_EQ(sums[1], (std::vector<double>{0, 3 * ones, ones, 4 * ones, 2 * ones, 5 * ones}));
  EXPECT_EQ(sums[2], std::vector<double>(2, ones));
  EXPECT_EQ(sums[3], std::vector<double>(3, std::ldexp(size, 40) + ranks));
  EXPECT_TRUE(sums[4].empty());
  EXPECT_EQ(endings[0].numbers("smallest")[0], (std::vector<double>{0, 1.0 - size, 5}));
  EXPECT_EQ(endings[0].numbers("broadcast")[0], std::vector<double>(4, 1 / 3.0));
  EXPECT_EQ(endings[0].numbers("broadcast")[1], std::vector<double>{1});
  EXPECT_EQ(endings[0].numbers("large"), std::vector<std::vector<double>>(3, {ones}));
  EXPECT_EQ(endings[0].numbers("steps")[0].size(), 1000u);
}

// What the task "device" prints.
void expect_sums_of_device(const std::vector<Ending>& endings) {
  const auto size = static_cast<int>(endings.size());
  for (const Ending& ending : endings) {
    ASSERT_TRUE(ending.done()) << ending.output;
    EXPECT_EQ(ending.numbers("sum"), endings[0].numbers("sum"));
  }
  const double ranks = size * (size - 1) / 2.0, ones = ranks + size;
  const auto sums = endings[0].numbers("sum");
  ASSERT_EQ(sums.size(), 55U);
  for (const double value : sums[0]) EXPECT_NEAR(value, ranks + 0.1 * size, 1e-6);
  EXPECT_EQ(sums[1], std::vector<double>(6, ones));
  EXPECT_EQ(sums[2], std::vector<double>(2, ones));
  EXPECT_EQ(sums[3], std::vector<double>(3, std::ldexp(size, 40) + ranks));
  EXPECT_EQ(sums[4], std::vector<double>(4, ranks + 2 * size));
  for (std::size_t i = 0; i < 50; ++i)
    EXPECT_EQ(sums[5 + i], std::vector<double>{ranks + static_cast<double>(i) * size});
}

TEST_P(ProcessGroupOf, SumsWhatLiesOnADevice) {
  const std::vector<Ending> endings = run(GetParam(), "device");
  expect_sums_of_device(endings);
  // One for each type: floats on both sides of the tensor on the CPU, doubles, integers.
  for (const char* const what : {"waits", "copies"})
    EXPECT_EQ(endings[0].numbers(what), std::vector<std::vector<double>>{{4}});
}

TEST_P(ProcessGroupOf, SumsFromDeviceToDeviceByNccl) {
  const std::vector<Ending> endings = run(GetParam(), "nccl");
  expect_sums_of_device(endings);
  for (const Ending& ending : endings) EXPECT_THAT(ending.output, HasSubstr("way NCCL\n"));
  EXPECT_EQ(endings[0].numbers("copies"), std::vector<std::vector<double>>{{0}});
}

TEST_P(ProcessGroupOf, SumsByGlooWhereOneCannotConnectItsDevice) {
  const std::vector<Ending> refused = run(GetParam(), "nccl-refused"), none = run(GetParam(), "nccl-none");
  expect_sums_of_device(refused);
  expect_sums_of_device(none);
  EXPECT_THAT(refused[0].output, HasSubstr("way Gloo (another process could not connect its GPU)"));
  EXPECT_THAT(refused[1].output, HasSubstr("way Gloo (NCCL: connecting: refused)"));
  for (const Ending& ending : none)
    EXPECT_THAT(ending.output, HasSubstr("way Gloo (not every process has a GPU and NCCL)"));
}

TEST_P(ProcessGroupOf, EndsWithAnErrorWhereADeviceDoesNotAnswer) {
  const int size = GetParam();
  std::vector<Ending> endings = run(size, "nccl-dies", 1);
  EXPECT_TRUE(WIFSIGNALED(endings[1].status));
  endings.erase(endings.begin() + 1);
  for (const Ending& ending : endings)
    EXPECT_THAT(ending.output, AllOf(HasSubstr("another process has ended or does not answer"),
                                     HasSubstr("rank 1 on "), HasSubstr("remote process exited")));
  for (const Ending& ending : run(size, "nccl-silent"))
    EXPECT_THAT(ending.output, HasSubstr("NCCL: another GPU does not answer"));
}

TEST_P(ProcessGroupOf, LearnsWhatOneLearnsFromTheSameBatch) {
  const Ending alone = run(1, "descend")[0];
  ASSERT_TRUE(alone.done()) << alone.output;
  const std::vector<double> weight = alone.numbers("weight")[0];
  ASSERT_GT(std::abs(weight[0]), 0.01);
  for (const Ending& ending : run(GetParam(), "descend")) {
    ASSERT_TRUE(ending.done()) << ending.output;
    for (std::size_t i = 0; i < weight.size(); ++i)
      EXPECT_NEAR(ending.numbers("weight")[0][i], weight[i], 1e-5);
    EXPECT_NEAR(ending.numbers("loss")[0][0], alone.numbers("loss")[0][0], 1e-4);
  }
}

TEST_P(ProcessGroupOf, EndsWithAnErrorWhenAProcessIsKilled) {
  const int size = GetParam();
  for (const int victim : {0, 1}) {
    const std::vector<Ending> endings = run(size, "die", victim);
    for (int rank = 0; rank < size; ++rank) {
      const Ending& ending = endings[static_cast<std::size_t>(rank)];
      if (rank == victim) {
        EXPECT_TRUE(WIFSIGNALED(ending.status));
        continue;
      }
      EXPECT_TRUE(WIFEXITED(ending.status));
      EXPECT_THAT(ending.output,
                  AllOf(HasSubstr("error rank " + std::to_string(rank) + " of " + std::to_string(size)),
                        HasSubstr("another process has ended or does not answer"),
                        HasSubstr("rank " + std::to_string(victim) + " on "), HasSubstr("--resume")));
      for (int other = 0; other < size; ++other)
        if (other != victim) {
          EXPECT_THAT(ending.output, Not(HasSubstr("rank " + std::to_string(other) + " on ")));
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ProcessGroupOf, testing::Values(2, 3));

TEST_F(Processes, EndWithAnErrorWhenOneLeavesEarly) {
  const std::vector<Ending> endings = run(2, "leave", 1);
  EXPECT_TRUE(endings[1].done());
  EXPECT_THAT(endings[0].output, HasSubstr("rank 1 on "));
}

TEST_F(Processes, OutliveAWriteToOneWhoHasGone) {
  for (const Ending& ending : run(2, "pipe")) EXPECT_TRUE(ending.done()) << ending.output;
}

TEST_F(Processes, EndWithAnErrorWhenOneHangs) {
  for (const int victim : {0, 1}) {
    port_ = test::free_port();
    for (int rank = 0; rank < 2; ++rank) start(rank, 2, "stop", victim);
    const Ending ending = end_of(1 - victim);
    EXPECT_TRUE(WIFEXITED(ending.status));
    EXPECT_THAT(ending.output, AllOf(HasSubstr("error"), HasSubstr("does not answer"),
                                     HasSubstr("rank " + std::to_string(victim) + " on ")));
    kill(victim);
    EXPECT_TRUE(WIFSIGNALED(end_of(victim).status));
  }
}

// Long before the limit of the call, which is two minutes.
TEST_F(Processes, EndWithAnErrorWhenNothingIsHeardOfOne) {
  for (const int victim : {0, 1}) {
    port_ = test::free_port();
    for (int rank = 0; rank < 2; ++rank) start(rank, 2, "silent", victim);
    const Ending ending = end_of(1 - victim);
    EXPECT_TRUE(WIFEXITED(ending.status));
    EXPECT_THAT(ending.output, AllOf(HasSubstr("rank " + std::to_string(victim) + " on "),
                                     HasSubstr("nothing has been heard of rank " + std::to_string(victim))));
    kill(victim);
    EXPECT_TRUE(WIFSIGNALED(end_of(victim).status));
  }
}

TEST_F(Processes, GiveTheSameErrorAgain) {
  const std::vector<Ending> endings = run(2, "again", 1);
  EXPECT_THAT(endings[0].output, HasSubstr("rank 1 on "));
}

TEST_F(Processes, SayWhoDidNotCome) {
  start(0, 3, "wait");
  start(2, 3, "wait");
  const Ending first = end_of(0), last = end_of(2);
  EXPECT_THAT(first.output,
              AllOf(HasSubstr("error MASTER_ADDR=127.0.0.1"), HasSubstr("rank 1 of 3 did not come")));
  EXPECT_THAT(last.output, HasSubstr("error MASTER_ADDR=127.0.0.1"));
  start(1, 2, "wait");
  EXPECT_THAT(end_of(1).output, HasSubstr("rank 1 found nobody there within 4 s"));
}

TEST_F(Processes, SayThatThePortIsTaken) {
  const int handle = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  ASSERT_EQ(bind(handle, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(handle, 1), 0);
  start(0, 2, "wait");
  EXPECT_THAT(end_of(0).output, AllOf(HasSubstr("rank 0 cannot listen there"), HasSubstr("another port")));
  close(handle);
}

TEST_F(Processes, AloneOpenNothing) {
  ProcessGroup group;
  EXPECT_TRUE(group.alone());
  std::vector<double> values{1, 2};
  group.sum(values);
  group.smallest(values);
  group.barrier();
  EXPECT_EQ(values, (std::vector<double>{1, 2}));
  EXPECT_EQ(group.share().size, 1);
}

TEST(ShareOf, GivesEveryItemToOneRank) {
  for (const int size : {1, 2, 3, 7})
    for (const std::int64_t count : {0, 1, 2, 10, 21}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const ItemRange own = share_of(count, rank, size);
        EXPECT_EQ(own.first, next);
        EXPECT_LE(std::abs(own.count - count / size), 1);
        next = own.end();
      }
      EXPECT_EQ(next, count);
    }
}

} // namespace
