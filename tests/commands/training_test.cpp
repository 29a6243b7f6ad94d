// Training by the program itself: killed at any moment it goes on to the same adapter.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <random>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/inotify.h>

#include "engine/base/files.h"
#include "engine/base/paths.h"
#include "tests/commands/program.h"
#include "tests/support/free_port.h"

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

  // `name` tells its output files from those of others; `environment` as NAME=VALUE words.
  pid_t start(const std::string& arguments, const std::string& name = "",
              const std::string& environment = "") const {
    const std::string command = "exec env " + environment + " '" + test::program().string() + "' " +
                                arguments + " >" + at(name + "output.txt") + " 2>" + at(name + "errors.txt");
    std::string shell = "sh", flag = "-c", text = command;
    char* const words[] = {shell.data(), flag.data(), text.data(), nullptr};
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, "/bin/sh", nullptr, nullptr, words, environ), 0);
    return child;
  }

  // As torchrun sets it.
  static std::string world(const int rank, const int size, const int port) {
    return fmt::format("RANK={} WORLD_SIZE={} MASTER_ADDR=127.0.0.1 MASTER_PORT={}", rank, size, port);
  }

  static int wait_for(const pid_t child) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  void expect_same_by_several(const std::string& arguments) {
    std::vector<double> alone;
    for (const int size : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} processes", size));
      const fs::path output = folder_ / fmt::format("{}.safetensors", size);
      const int port = test::free_port();
      std::vector<pid_t> children;
      for (int rank = 0; rank < size; ++rank)
        children.push_back(start(arguments + " -o " + output.string(), std::to_string(rank),
                                 size == 1 ? "" : world(rank, size, port)));
      for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0) << bytes_of(at("0errors.txt"));
      for (int rank = 1; rank < size; ++rank)
        EXPECT_EQ(bytes_of(at(std::to_string(rank) + "output.txt")), "") << "rank 0 alone tells";
      const std::vector<double> values = test::all_halves(bytes_of(output));
      ASSERT_GT(values.size(), 100U);
      if (size == 1) alone = values;
      ASSERT_EQ(values.size(), alone.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], alone[i], 2e-3 * std::max(1.0, std::abs(alone[i])));
    }
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
    const std::string output = at("killed/it.safetensors"), again = arguments + " -o " + output;
    constexpr int kills = 6;
    int status = -1;
    for (int life = 0;; ++life) {
      const bool resumed = fs::exists(output + ".checkpoint");
      const pid_t child = start(resumed ? again + " --resume" : again);
      if (life < kills) {
        std::this_thread::sleep_for(duration * std::uniform_real_distribution<>(0.2, 0.9)(random));
        kill(child, SIGKILL);
      }
      ASSERT_EQ(waitpid(child, &status, 0), child);
      // It ended by itself, or it was killed after the output was written.
      if (WIFEXITED(status) || fs::exists(output)) break;
    }
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << bytes_of(at("errors.txt"));
    EXPECT_EQ(bytes_of(at("whole/it.safetensors")), bytes_of(output));
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
      " --train-layers 1,head --image-size 28 --epochs 60 --batch 4 --threads 1 --patience 0 --seed 3" +
      " --mixup 0.2 --checkpoint-seconds 0.02");
}

TEST_F(TrainingCommand, SeveralProcessesDistilTheSameAdapter) {
  expect_same_by_several("distill --kernel hedgehog --no-adapter --model " + model("bert") + " --data " +
                         at("lines.txt") + " --epochs 3 --batch 5 --threads 1 --patience 0 --seed 3");
}

TEST_F(TrainingCommand, SeveralProcessesFineTuneTheSameAdapter) {
  expect_same_by_several(
      "finetune --no-adapter --model " + model("dinov2") + " --data " + at("pictures") +
      " --train-layers 1,head --image-size 28 --epochs 4 --batch 5 --threads 1 --patience 0 --seed 3" +
      " --mixup 0.2 --dtype float32");
}

TEST_F(TrainingCommand, WhenAProcessDiesTheOthersStopAndTheCheckpointServes) {
  const std::string arguments = "distill --kernel hedgehog --no-adapter --model " + model("bert") +
                                " --data " + at("lines.txt") + " --epochs 90000 --batch 4 --threads 1" +
                                " --patience 0 --checkpoint-seconds 0.05 -o " + at("it.safetensors");
  const int port = test::free_port();
  const pid_t first = start(arguments, "0", world(0, 2, port)),
              second = start(arguments, "1", world(1, 2, port));
  const std::string checkpoint = at("it.safetensors.checkpoint");
  while (!fs::exists(checkpoint)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(second, SIGKILL);
  EXPECT_EQ(wait_for(second), -1);
  EXPECT_EQ(wait_for(first), 1);
  const std::string errors = bytes_of(at("0errors.txt"));
  EXPECT_NE(errors.find("another process has ended"), std::string::npos) << errors;
  EXPECT_NE(errors.find("--resume"), std::string::npos) << errors;

  const auto before = fs::last_write_time(checkpoint);
  const pid_t resumed = start(arguments + " --resume");
  while (fs::last_write_time(checkpoint) == before)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(resumed, SIGINT);
  EXPECT_EQ(wait_for(resumed), 1);
  EXPECT_NE(bytes_of(at("errors.txt")).find("stopped after"), std::string::npos)
      << bytes_of(at("errors.txt"));
}

// A signal also stops a process that waits for the cache that another one fills.
TEST_F(TrainingCommand, StopsWhileItWaitsForAnothersCache) {
  const std::string arguments = "finetune --no-adapter --model " + model("dinov2") + " --data " +
                                at("pictures") + " --train-layers 1,head --image-size 28 --epochs 1" +
                                " --batch 5 --threads 1 -o " + at("it.safetensors");
  EXPECT_EQ(wait_for(start(arguments)), 0); // makes the cache's files
  const int watch = inotify_init1(IN_CLOEXEC);
  std::vector<ItemLock> held; // of pictures as few as these there is one piece
  for (const auto& entry : fs::directory_iterator(at("cache/hydrascope/features"))) {
    if (entry.path().extension() == ".json") fs::remove(entry.path()); // nothing is filled
    if (entry.path().extension() != ".pieces") continue;
    auto piece = ItemLock::take(entry.path(), 0, "");
    ASSERT_TRUE(piece);
    held.push_back(std::move(*piece));
    EXPECT_GE(inotify_add_watch(watch, entry.path().c_str(), IN_OPEN), 0);
  }
  ASSERT_FALSE(held.empty());
  const pid_t waiting = start(arguments);
  pollfd asked{.fd = watch, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&asked, 1, 60'000), 1);
  kill(waiting, SIGTERM);
  EXPECT_EQ(wait_for(waiting), 1);
  EXPECT_NE(bytes_of(at("errors.txt")).find("stopped"), std::string::npos) << bytes_of(at("errors.txt"));
  close(watch);
}

TEST_F(TrainingCommand, CopiesStretchASmallSetOfPictures) {
  const std::string start =
      "distill --kernel hedgehog --no-adapter --image-size 28 --batch 1 --threads 1 "
      "--epochs 1 --validation-share 0.5 --json --model " +
      model("dinov2") + " --data " + at("pictures") + " -o " + at("it.safetensors");
  const test::Outcome plain = hydrascope(start), stretched = hydrascope(start + " --copies 3");
  ASSERT_EQ(stretched.status, 0) << stretched.errors;
  const auto steps = [](const test::Outcome& outcome) {
    return nlohmann::json::parse(outcome.output).at("steps").get<int>();
  };
  EXPECT_EQ(steps(plain), 12);
  EXPECT_EQ(steps(stretched), 3 * 12);
}

// Hedgehog paper, A.3, as in the window's form: both are default_values().
TEST_F(TrainingCommand, WhatIsNotGivenIsThePapers) {
  const auto steps = [&](const std::string& arguments) {
    const test::Outcome outcome = hydrascope(arguments + " --no-adapter --patience 0 --threads 1 --curve " +
                                             at("curve.csv") + " -o " + at("it.safetensors"));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return std::ranges::count(bytes_of(at("curve.csv")), '\n') - 1;
  };
  // Of 60 lines 57 are trained on, 8 in a step; all pictures fit into a step of 32.
  EXPECT_EQ(steps("distill --kernel hedgehog --model " + model("bert") + " --data " + at("lines.txt")),
            5 * 8);
  EXPECT_EQ(steps("finetune --train-layers head --image-size 28 --model " + model("dinov2") + " --data " +
                  at("pictures")),
            10);
  const auto help_of = [&](const std::string& command) { // without line breaks
    std::istringstream words(hydrascope(command + " --help").output);
    std::string text;
    for (std::string word; words >> word;) text += word + ' ';
    return text;
  };
  const std::string distil = help_of("distill"), tune = help_of("finetune");
  for (const char* text : {"pictures 2, texts 5, decoders 2", "pictures 32, texts and decoders 8"})
    EXPECT_NE(distil.find(text), std::string::npos) << text << '\n' << distil;
  for (const char* text : {"pictures 10, texts 5, decoders 2", "pictures 32, texts and decoders 8",
                           "pictures 0.001, texts 1e-05, decoders 0.0001"})
    EXPECT_NE(tune.find(text), std::string::npos) << text << '\n' << tune;
}

// The metadata that say which program made an adapter of what.
TEST_F(TrainingCommand, AdaptersNameTheProgramAndTheirData) {
  const auto adapter_of = [&](const std::string& arguments) {
    const test::Outcome outcome =
        hydrascope(arguments + " --no-adapter --epochs 1 --threads 1 --json -o " + at("it.safetensors"));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return nlohmann::json::parse(outcome.output);
  };
  const std::string version = hydrascope("--version").output;
  const auto lines =
      adapter_of("distill --kernel hedgehog --model " + model("bert") + " --data " + at("lines.txt"));
  EXPECT_NE(version.find(lines.at("version").get<std::string>()), std::string::npos) << version;
  EXPECT_EQ(lines.at("data_hash"), sha256_of_file(at("lines.txt")));
  const auto shown = hydrascope("run --text a --kernel hedgehog --json --model " + model("bert") +
                                " --adapter " + at("it.safetensors"));
  ASSERT_EQ(shown.status, 0) << shown.errors;
  const auto adapters = nlohmann::json::parse(shown.output).at("adapters");
  EXPECT_EQ(adapters.at(0).at("data_hash"), lines.at("data_hash"));
  EXPECT_EQ(adapters.at(0).at("version"), lines.at("version"));

  const std::string tune =
      "finetune --train-layers head --image-size 28 --model " + model("dinov2") + " --data " + at("pictures");
  const auto pictures = adapter_of(tune).at("data_hash");
  EXPECT_EQ(adapter_of(tune).at("data_hash"), pictures);
  fs::rename(at("pictures/red/3.ppm"), at("pictures/red/30.ppm"));
  EXPECT_NE(adapter_of(tune).at("data_hash"), pictures) << "the names of the pictures are part of it";
}

TEST_F(TrainingCommand, JsonNamesFilesWhoseNamesAreNotUtf8) {
  const test::Outcome outcome =
      hydrascope("distill --kernel hedgehog --no-adapter --epochs 1 --threads 1 --json --model " +
                 model("bert") + " --data " + at("lines.txt") + " -o " + at("\xe9t\xe9.safetensors"));
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_TRUE(fs::exists(at("\xe9t\xe9.safetensors")));
  const auto adapter = nlohmann::json::parse(outcome.output).at("adapter").get<std::string>();
  EXPECT_TRUE(adapter.ends_with("/\xef\xbf\xbdt\xef\xbf\xbd.safetensors")) << adapter;
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
  expect_error(start + "--lora 8", 2, "rank=8,alpha=16");
  expect_error(start + "--train-layers head --lora rank=2", 2, "no layer is trained");
  expect_error("distill --kernel hedgehog --no-adapter --model " + model("bert") + " --data " +
                   at("lines.txt") + " --chunk 40-8 -o " + at("x"),
               2, "--chunk");
  const std::string copies = "distill --kernel hedgehog --no-adapter -o " + at("x") + " --model ";
  for (const char* number : {"0", "-2", "many", "1001"})
    expect_error(copies + model("dinov2") + " --data " + at("pictures") + " --copies " + number, 2,
                 "--copies");
  expect_error(copies + model("bert") + " --data " + at("lines.txt") + " --copies 3", 2, "is for pictures");
  expect_error(start + "--copies 1001", 2, "--copies");
}

} // namespace
} // namespace hydrascope
