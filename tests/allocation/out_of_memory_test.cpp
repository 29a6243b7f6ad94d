// Memory that runs out at any one allocation of a task: an error, and the next run works. A process of its
// own for each hundred allocations, so that one that ends the program is named and the others are tried. By
// default a few hundred of them are, with HYDRASCOPE_EVERY_ALLOCATION=1 all.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/attention/interface/schedule.h"
#include "engine/attention/own/map_script.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/error_message.h"
#include "engine/base/image.h"
#include "engine/base/safetensors.h"
#include "engine/models/transformer/model.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/run.h"
#include "engine/run/runner.h"
#include "tests/allocation/failing_allocator.h"
#include "tests/support/checkout.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
using test::FailingAllocation;

struct Progress { // shared with the child
  std::int64_t next = 0, refused = 0, left_out = 0;
  char wrong[400] = {};
};

using Task = std::function<void()>;
using Check = std::function<std::string()>; // what is wrong after a task; empty if nothing is

struct Outcome {
  std::int64_t allocations = 0, tried = 0, refused = 0, left_out = 0;
  std::vector<std::string> wrong;
};

// Tries the allocations from `begin` on until a hundred are done.
void child(Progress& progress, const std::int64_t end, const std::int64_t step, const Task& task,
           const Check& check) {
  for (std::int64_t& number = progress.next; number < end; number += step) {
    std::string wrong;
    try {
      const FailingAllocation failing(number);
      task();
      progress.left_out += failing.left_out() ? 1 : 0;
    } catch (const std::exception& error) { // as the window and the command line show it
      ++progress.refused;
      const std::string message = error_message(error);
      if (message.find("memory") == std::string::npos) wrong = fmt::format("\"{}\"", message);
    }
    if (wrong.empty()) wrong = check();
    if (wrong.empty()) continue;
    progress.wrong[wrong.copy(static_cast<char*>(progress.wrong), sizeof progress.wrong - 1)] = '\0';
    _exit(1);
  }
  _exit(0);
}

Outcome fail_everywhere(const Task& task, const Check& check) {
  Outcome outcome;
  task(); // what is made once is there then
  {
    const FailingAllocation counting(FailingAllocation::none);
    task();
    outcome.allocations = counting.allocations();
  }
  constexpr std::int64_t by_default = 300;
  const std::int64_t step = std::getenv("HYDRASCOPE_EVERY_ALLOCATION") != nullptr
                                ? 1
                                : std::max<std::int64_t>(1, outcome.allocations / by_default);
  auto* const memory =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto& progress = *new (memory) Progress;
  for (std::int64_t begin = 0; begin < outcome.allocations;) {
    progress.next = begin;
    const std::int64_t end = std::min(outcome.allocations, begin + 100 * step);
    const pid_t process = fork();
    if (process < 0) throw std::runtime_error("fork failed");
    if (process == 0) child(progress, end, step, task, check);
    int status = 0;
    waitpid(process, &status, 0);
    if (status != 0) {
      const std::string why = WIFSIGNALED(status) ? fmt::format("ends with signal {}", WTERMSIG(status))
                                                  : std::string(static_cast<char*>(progress.wrong));
      outcome.wrong.push_back(fmt::format("allocation {}: {}", progress.next, why));
      progress.next += step;
      progress.wrong[0] = '\0';
    }
    outcome.tried += (progress.next - begin) / step;
    begin = progress.next;
  }
  outcome.refused = progress.refused;
  outcome.left_out = progress.left_out;
  munmap(memory, sizeof(Progress));
  return outcome;
}

void expect_good(const Outcome& outcome) {
  const std::int64_t failed = outcome.tried - outcome.left_out;
  fmt::print("{} of {} allocations failed, {} of them with an error; {} left out\n", failed,
             outcome.allocations, outcome.refused, outcome.left_out);
  EXPECT_GT(outcome.tried, 30);
  EXPECT_GT(outcome.refused, failed / 4);
  EXPECT_TRUE(outcome.wrong.empty()) << fmt::format("{}", fmt::join(outcome.wrong, "\n"));
}

class OutOfMemory : public testing::Test {
protected:
  OutOfMemory() {
    at::set_num_threads(1); // a child has no other thread
    std::string name = (fs::temp_directory_path() / "hydrascope-memory-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = name;
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }
  ~OutOfMemory() override { fs::remove_all(folder_); }

  static RunRequest request(const std::string& model, const RunInput& input) {
    RunRequest request;
    request.model_folder = test::source_folder() / "tests/golden" / model;
    request.input = input;
    request.schedule = ScheduleText{.kernel = "hedgehog-untrained"};
    request.quantities = {WeightsKey{.layer = 1}, FocusKey{.layer = 1}};
    request.execution.threads = 1;
    return request;
  }

  static std::vector<RunRequest> requests() { // a text, a picture, a text of a decoder
    const fs::path picture = test::source_folder() / "tests/golden/images/pictures/gradient.png";
    const TextInput text{"the cat sat on the mat", std::nullopt};
    return {request("models/bert", text),
            request("models/vit", ImageInput{std::make_shared<const Image>(load_image(picture)), "", {}}),
            request("decoders/written", text)};
  }

  fs::path folder_;
};

std::vector<float> values_of(const RunResult& result) {
  const FocusResult* const focus = result.quantities.find(FocusKey{.layer = 1});
  return focus == nullptr ? std::vector<float>() : focus->contributions.values;
}

TEST_F(OutOfMemory, ARunIsRefusedAndTheNextOneWorks) {
  for (const RunRequest& asked : requests()) {
    SCOPED_TRACE(asked.model_folder.string());
    Runner runner(0); // without a cache every run computes all
    const std::shared_ptr<const RunResult> last = runner.run(asked);
    const std::vector<float> expected = values_of(*last);
    ASSERT_FALSE(expected.empty());
    expect_good(fail_everywhere([&] { runner.run(asked); },
                                [&]() -> std::string {
                                  if (values_of(*last) != expected) return "the last result has changed";
                                  return values_of(*runner.run(asked)) == expected ? ""
                                                                                   : "the next run differs";
                                }));
  }
}

TEST_F(OutOfMemory, ALoadedModelIsRefusedAndTheNextOneWorks) {
  for (const RunRequest& asked : requests()) {
    SCOPED_TRACE(asked.model_folder.string());
    const auto load_and_run = [&] {
      Runner runner(0, make_model_store({load_model, [] { return std::vector<AdapterInfo>(); }}));
      return values_of(*runner.run(asked));
    };
    const std::vector<float> expected = load_and_run();
    expect_good(fail_everywhere(
        [&] { load_and_run(); },
        [&]() -> std::string { return load_and_run() == expected ? "" : "the next run differs"; }));
  }
}

// What it was refused for is not kept.
TEST_F(OutOfMemory, ASourceOfAMapIsTriedAgain) {
  const auto script = MapScript::of(parse_map_source("typed", "def phi(x):\n    return torch.relu(x)\n"));
  constexpr std::int64_t head_width = 8;
  std::int64_t heads = 0; // others each time: what was found is kept
  expect_good(fail_everywhere([&] { script->problem(++heads, head_width); },
                              [&]() -> std::string {
                                const auto problem = script->problem(heads, head_width);
                                return problem ? "still refused: " + problem->reason() : std::string();
                              }));
}

TEST_F(OutOfMemory, AFileIsTheOldOneOrTheNewOne) {
  const fs::path file = folder_ / "tensors.safetensors";
  const std::vector<float> numbers(1000, 0.5F);
  const std::map<std::string, TensorView> tensors = {
      {"a", {ElementType::f32, {10, 100}, std::as_bytes(std::span(numbers))}}};
  int written = 0;
  const auto write = [&] { write_safetensors(file, tensors, {{"written", std::to_string(++written)}}); };
  expect_good(fail_everywhere(write, [&]() -> std::string {
    const auto entries = std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
    if (entries != 1) return "a temporary file is left";
    return SafetensorsFile::open(file).tensors().size() == 1 ? "" : "the file is another";
  }));
}

} // namespace
} // namespace hydrascope
