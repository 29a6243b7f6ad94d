// Training by the program itself: killed at any moment it goes on to the same adapter.
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>

#include "tests/commands/program.h"

extern char**
    environ; // NOLINT(readability-redundant-declaration): POSIX leaves its declaration to the program

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using Clock = std::chrono::steady_clock;

class TrainingCommand : public test::ProgramTest {
protected:
  TrainingCommand() {
    setenv("XDG_CACHE_HOME", at("cache").c_str(), 1);
    std::mt19937 random(7);
    std::ofstream lines(at("lines.txt"));
    for (int line = 0; line < 60; ++line) {
      for (unsigned i = 0; i < 5 + random() % 12; ++i)
        lines << static_cast<char>('a' + static_cast<int>(random() % 26)) << ' ';
      lines << '\n';
    }
    for (const char* color : {"blue", "red"}) {
      const fs::path folder = folder_ / "pictures" / color;
      fs::create_directories(folder);
      for (int i = 0; i < 12; ++i) {
        std::string bytes = "P6\n30 30\n255\n";
        for (int value = 0; value < 3 * 30 * 30; ++value)
          bytes += static_cast<char>(random() % 100 + (value % 3 == (color[0] == 'b' ? 2 : 0) ? 150 : 0));
        std::ofstream(folder / fmt::format("{}.ppm", i), std::ios::binary) << bytes;
      }
    }
  }

  static std::string model(const std::string& name) {
    return (test::source_folder() / "tests/golden/models" / name).string();
  }

  pid_t start(const std::string& arguments) const {
    const std::string command = "exec '" + test::program().string() + "' " + arguments + " >" +
                                at("output.txt") + " 2>" + at("errors.txt");
    std::string shell = "sh", flag = "-c", text = command;
    char* const words[] = {shell.data(), flag.data(), text.data(), nullptr};
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, "/bin/sh", nullptr, nullptr, words, environ), 0);
    return child;
  }

  // Runs the training once to its end, then again killed at random times and resumed until it ends; the
  // adapters are the same bytes.
  void expect_same_after_kills(const std::string& arguments) {
    fs::create_directories(at("whole"));
    fs::create_directories(at("killed"));
    const auto begin = Clock::now();
    const test::Outcome whole = hydrascope(arguments + " -o " + at("whole/it.safetensors"));
    ASSERT_EQ(whole.status, 0) << whole.errors;
    const std::chrono::duration<double> duration = Clock::now() - begin;

    const auto seed = std::random_device{}();
    SCOPED_TRACE(fmt::format("random times from seed {}", seed));
    std::mt19937 random(seed);
    const std::string output = at("killed/it.safetensors");
    constexpr int kills = 6;
    int status = -1;
    for (int life = 0;; ++life) {
      const bool resumed = fs::exists(output + ".checkpoint");
      const pid_t child = start(arguments + " -o " + output + (resumed ? " --resume" : ""));
      if (life < kills) {
        std::this_thread::sleep_for(duration * std::uniform_real_distribution<>(0.2, 0.9)(random));
        kill(child, SIGKILL);
      }
      ASSERT_EQ(waitpid(child, &status, 0), child);
      if (WIFEXITED(status)) break; // it came to its end, before it was killed or because nobody did
      EXPECT_FALSE(fs::exists(output)) << "a killed training left an adapter";
    }
    ASSERT_EQ(WEXITSTATUS(status), 0) << bytes_of(at("errors.txt"));
    EXPECT_EQ(bytes_of(at("whole/it.safetensors")), bytes_of(output));
    EXPECT_FALSE(fs::exists(output + ".checkpoint"));
  }
};

TEST_F(TrainingCommand, DistillationKilledAtRandomTimesEndsInTheSameAdapter) {
  expect_same_after_kills("distill --kernel hedgehog --no-adapter --model " + model("bert") + " --data " +
                          at("lines.txt") + " --epochs 20 --batch 4 --threads 1 --patience 0 --seed 3" +
                          " --checkpoint-seconds 0.02 --validate-every 5");
}

TEST_F(TrainingCommand, FineTuningKilledAtRandomTimesEndsInTheSameAdapter) {
  expect_same_after_kills(
      "finetune --no-adapter --model " + model("dinov2") + " --data " + at("pictures") +
      " --train-layers 1,head --image-size 28 --epochs 60 --batch 4 --threads 1 --seed 3" +
      " --mixup 0.2 --checkpoint-seconds 0.02");
}

TEST_F(TrainingCommand, T2rIsTrainedWithTheTaskOnly) {
  expect_error("distill --kernel t2r --no-adapter --model " + model("bert") + " --data " + at("lines.txt") +
                   " -o " + at("it.safetensors"),
               2, "by finetune");
}

TEST_F(TrainingCommand, OptionsThatMakeNoSenseAreNamed) {
  const std::string start = "finetune --no-adapter --model " + model("dinov2") + " --data " + at("pictures") +
                            " -o " + at("x") + " ";
  expect_error(start + "--train-layers 1-x", 2, "--train-layers");
  expect_error(start + "--train-layers 1,1.attention", 2, "named twice");
  expect_error("distill --kernel hedgehog --no-adapter --model " + model("bert") + " --data " +
                   at("lines.txt") + " --chunk 40-8 -o " + at("x"),
               2, "--chunk");
}

} // namespace
} // namespace hydrascope
