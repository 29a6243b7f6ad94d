// A device whose memory runs out, within a run and for good.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/run/placement.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/runner.h"
#include "tests/engine/models/golden.h"
#include "tests/engine/run/read_result.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

const Placement on_fake_device{test::fake_device(), c10::kFloat};

RunRequest request_of(const std::string& text) {
  RunRequest request;
  request.model_folder = test::golden_folder() / "models/bert";
  request.input = TextInput{text, std::nullopt};
  request.quantities = {HiddenStatesKey{}};
  return request;
}

const std::vector<float>& numbers(const RunResult& result) {
  return test::read(result, HiddenStatesKey{}).back().values;
}

TEST(DeviceMemory, CachesAreEmptiedBeforeASecondAttempt) {
  const RunRequest request = request_of("the cat sat on a mat");
  Runner runner;
  const auto expected = Runner().run_in(on_fake_device, request);
  // Hidden states of other inputs push the memory in use up.
  for (int words = 1; words < 40; ++words) {
    std::string text;
    for (int i = 0; i < words; ++i) text += i % 3 == 0 ? "cat " : i % 3 == 1 ? "mat " : "sat ";
    runner.run_in(on_fake_device, request_of(text));
  }
  const test::DeviceCounter counter;
  const test::DeviceMemoryLimit limit(0);
  EXPECT_EQ(numbers(*runner.run_in(on_fake_device, request)), numbers(*expected));
  EXPECT_EQ(counter.counts().caches_emptied, 1);
}

TEST(DeviceMemory, ARunThatDoesNotFitIsRefusedAndTheNextOneWorks) {
  const RunRequest request = request_of("the cat sat on a mat");
  Runner runner(0);
  const auto expected = runner.run_in(on_fake_device, request);
  {
    const test::DeviceMemoryLimit limit(0);
    const test::DeviceCounter counter;
    const std::string message = test::message_of<Error>([&] { runner.run_in(on_fake_device, request); });
    EXPECT_NE(message.find("out of memory on fake:0"), std::string::npos) << message;
    EXPECT_NE(message.find("--device cpu"), std::string::npos) << message;
    EXPECT_EQ(counter.counts().caches_emptied, 1);
  }
  EXPECT_EQ(numbers(*runner.run_in(on_fake_device, request)), numbers(*expected));
}

} // namespace
} // namespace hydrascope
