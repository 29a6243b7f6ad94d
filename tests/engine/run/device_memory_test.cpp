// A device whose memory runs out, within a run and for good.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/run/model_store.h"
#include "engine/run/placement.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/runner.h"
#include "tests/engine/attention/broken_kernels.h"
#include "tests/engine/models/golden.h"
#include "tests/engine/run/read_result.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

const Placement on_fake_device{test::fake_device(), c10::kFloat};

RunRequest request_of(const std::string& text, const std::string& model = "bert") {
  RunRequest request;
  request.model_folder = test::golden_folder() / "models" / model;
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

// They stay on the device for the next run on them.
TEST(DeviceMemory, ModelsOfEarlierRunsAreDroppedBeforeASecondAttempt) {
  const RunRequest request = request_of("the cat sat on a mat");
  const auto expected = Runner().run_in(on_fake_device, request);
  const auto models = make_model_store();
  Runner runner(0, models);
  runner.run_in(on_fake_device, request_of("the cat sat on a mat", "bert-mlm"));
  runner.run_in(on_fake_device, request_of("the cat sat on a mat", "bert-gamma-beta"));
  const test::DeviceCounter counter;
  const test::DeviceMemoryLimit limit(0);
  EXPECT_EQ(numbers(*runner.run_in(on_fake_device, request)), numbers(*expected));
  EXPECT_EQ(counter.counts().caches_emptied, 1);
}

TEST(DeviceMemory, OfModelsInUseOrOnAnotherDeviceIsKept) {
  const auto store = make_model_store();
  const Schedule softmax{std::vector<KernelSpec>(2)};
  const auto place = [&](const char* model, const Placement& placement) {
    return store->apply(test::golden_folder() / "models" / model, {}, softmax, placement).model;
  };
  const Placement on_cpu{c10::kCPU, c10::kBFloat16};
  const auto used = place("bert", on_fake_device);
  const std::weak_ptr<const Model> unused = place("bert-mlm", on_fake_device);
  const std::weak_ptr<const Model> elsewhere = place("bert-mlm", on_cpu);
  store->release_unused(on_fake_device.device_name());
  EXPECT_EQ(place("bert", on_fake_device), used);
  EXPECT_TRUE(unused.expired());
  EXPECT_EQ(place("bert-mlm", on_cpu), elsewhere.lock());
  EXPECT_EQ(place("bert-mlm", on_fake_device)->device(), test::fake_device());
}

TEST(DeviceMemory, IsReleasedWithEveryModelThatIsNotInUse) {
  const auto store = make_model_store();
  const RunRequest request = request_of("the cat sat on a mat");
  Runner runner(default_cache_bytes, store);
  const auto expected = runner.run_in(on_fake_device, request);
  const std::weak_ptr<const Model> base = store->base(request.model_folder);
  const auto used = store->base(test::golden_folder() / "models/bert-mlm");
  const test::DeviceCounter counter;
  runner.release();
  EXPECT_EQ(counter.counts().caches_emptied, 1);
  EXPECT_TRUE(base.expired());
  EXPECT_EQ(store->base(test::golden_folder() / "models/bert-mlm"), used);
  EXPECT_EQ(numbers(*runner.run_in(on_fake_device, request)), numbers(*expected));
}

// CUDA's libraries have no exception of their own for it.
TEST(DeviceMemory, ALibraryThatDoesNotFitIsTriedOnceMoreToo) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's kernels can be broken";
  RunRequest request = request_of("the cat sat on a mat");
  request.schedule = ScheduleText{.kernel = "hydra-cosine"};
  Runner runner(0);
  const testing_inputs::BrokenKernels broken(
      "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`");
  const test::DeviceCounter counter;
  const std::string message = test::message_of<Error>([&] { runner.run_in(on_fake_device, request); });
  EXPECT_NE(message.find("out of memory on fake:0"), std::string::npos) << message;
  EXPECT_EQ(counter.counts().caches_emptied, 1);
}

TEST(DeviceMemory, ARunThatDoesNotFitIsRefusedAndTheNextOneWorks) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "the fake device is not registered";
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

TEST(DeviceMemory, IsToldWithTheResult) {
  const RunRequest request = request_of("the cat sat on a mat");
  Runner runner;
  const auto there = runner.run_in(on_fake_device, request), here = runner.run_in({}, request);
  EXPECT_EQ(there->device_total_bytes, std::int64_t{4} << 30);
  EXPECT_GT(there->device_bytes, 100'000); // the model's weights at least
  EXPECT_LT(there->device_bytes, there->device_total_bytes);
  EXPECT_EQ(here->device_total_bytes, 0);
  EXPECT_EQ(here->device_bytes, 0);
}

TEST(DeviceMemory, OfOneDeviceLeavesTheCachesOfOthers) {
  RunRequest request = request_of("the cat sat on a mat");
  request.quantities = {};
  const std::int64_t states = 3 * 8 * 24 * 4; // of two layers, of eight tokens of width 24
  Runner runner(static_cast<std::size_t>(states));
  runner.run_in({}, request);
  runner.run_in(on_fake_device, request);
  for (const Placement& placement : {Placement{}, on_fake_device}) {
    const auto again = runner.run_in(placement, request);
    for (const LayerRun& layer : again->layers) EXPECT_TRUE(layer.cached) << placement.device_name();
  }
}

} // namespace
} // namespace hydrascope
