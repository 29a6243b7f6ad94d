// Training on an accelerator: every kind gives the losses and parameters of the CPU, goes on bit for bit
// from a checkpoint, waits for the device once or a few times a step, and survives a device whose memory runs
// out.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <c10/util/Exception.h>
#include <c10/util/Half.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/device.h"
#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/loop.h"
#include "engine/training/tasks/evaluate.h"
#include "engine/training/tasks/recall.h"
#include "tests/engine/attention/broken_kernels.h"
#include "tests/engine/training/toy.h"
#include "tests/support/devices.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using testing::ToyFolder;

std::string the_device() { return test::accelerator().str(); }

// A training: its settings can be changed before it runs.
struct Training {
  std::function<TrainingSettings&()> settings;
  std::function<TrainingOutcome(const TrainingObserver&, const std::stop_token&)> run;
};

template <typename Request>
Training training_of(Request request,
                     TrainingOutcome (*run)(const Request&, const TrainingObserver&, const std::stop_token&,
                                            const std::shared_ptr<ModelStore>&)) {
  const auto kept = std::make_shared<Request>(std::move(request));
  return {[kept]() -> TrainingSettings& { return kept->settings; },
          [kept, run](const TrainingObserver& observer, const std::stop_token& stop) {
            return run(*kept, observer, stop, make_model_store());
          }};
}

// ---- The kinds of training --------------------------------------------------------------------------------

Training distil_texts(const ToyFolder& folder) {
  DistillRequest request = testing::toy_distillation(folder);
  request.settings.patience = 0;
  request.settings.epochs = 2;
  return training_of(std::move(request), distill);
}

Training distil_pictures(const ToyFolder& folder) {
  DistillRequest request = testing::toy_distillation(folder);
  request.settings.model_folder = testing::make_toy_model(folder, "dinov2");
  request.data = {testing::make_toy_pictures(folder, 4)};
  request.copies = 2;
  request.cosine = true;
  request.settings.epochs = 2;
  request.settings.validate_every = 3;
  return training_of(std::move(request), distill);
}

FinetuneRequest two_epochs(const ToyFolder& folder) {
  FinetuneRequest request = testing::toy_finetuning(folder);
  request.settings.epochs = 2;
  return request;
}

Training finetune_layers(const ToyFolder& folder) { return training_of(two_epochs(folder), finetune); }

Training finetune_new_pictures(const ToyFolder& folder) {
  FinetuneRequest request = two_epochs(folder);
  request.copies = 0;
  request.mixup = 0.3;
  request.patch_dropout = 0.5;
  return training_of(std::move(request), finetune);
}

Training finetune_cached_parts(const ToyFolder& folder) {
  FinetuneRequest request = two_epochs(folder);
  request.mixup = 0.3;
  request.patch_dropout = 0.5;
  request.schedule = ScheduleText{.replace = {"back:1=hydra-cosine"}};
  request.trained = {.attention = {1}};
  return training_of(std::move(request), finetune);
}

Training finetune_low_rank(const ToyFolder& folder) {
  FinetuneRequest request = two_epochs(folder);
  request.schedule = ScheduleText{.replace = {"back:1=hedgehog"}};
  request.low_rank = {.rank = 2, .alpha = 4};
  return training_of(std::move(request), finetune);
}

// From a tail that is trained on the CPU first, with its classifier as the teacher's.
Training finetune_from_a_teacher(const ToyFolder& folder) {
  FinetuneRequest request = two_epochs(folder);
  finetune(request);
  request.settings.adapters.files = {request.settings.output};
  request.settings.output = folder / "after.safetensors";
  request.schedule = ScheduleText{.kernel = "hydra-cosine"};
  request.trained = {.layers = {0, 1}, .head = false};
  request.distillation_alpha = 0.7;
  request.distillation_hidden = 1;
  return training_of(std::move(request), finetune);
}

fs::path toy_table(const ToyFolder& folder) {
  std::ofstream table(folder / "table.tsv");
  for (std::uint64_t line = 0; line < 40; ++line) {
    table << (line % 2 == 0 ? "late\t" : "early\t");
    for (std::uint64_t i = 0; i < 3 + training::mix({line}) % 6; ++i)
      table << static_cast<char>('a' + static_cast<char>(training::mix({line, i}) % 13) +
                                 (line % 2 == 0 ? 13 : 0))
            << ' ';
    table << '\n';
  }
  return folder / "table.tsv";
}

FinetuneRequest of_texts(const ToyFolder& folder) {
  FinetuneRequest request = two_epochs(folder);
  request.settings.model_folder = testing::make_toy_model(folder, "bert");
  request.data = {toy_table(folder)};
  request.columns = {.text = 2, .label = 1};
  return request;
}

Training finetune_texts(const ToyFolder& folder) {
  FinetuneRequest request = of_texts(folder);
  request.schedule = ScheduleText{.kernel = "elu"};
  return training_of(std::move(request), finetune);
}

Training finetune_embeddings(const ToyFolder& folder) {
  FinetuneRequest request = of_texts(folder);
  request.trained = {.layers = {0, 1}, .embeddings = true};
  return training_of(std::move(request), finetune);
}

TrainingOutcome recall_of(const RecallRequest& request, const TrainingObserver& observer,
                          const std::stop_token& stop, const std::shared_ptr<ModelStore>&) {
  return recall(request, observer, stop).training;
}

RecallRequest tiny_recall(const ToyFolder& folder, const std::string& kernel) {
  RecallRequest request = recall_request(RecallPreset::small);
  request.kernel = parse_kernel_spec(kernel);
  request.task = {.keys = 2, .values = 2, .tokens = 10, .training = 128, .validation = 64, .test = 128};
  request.model = {.layers = 2, .heads = 2, .head_width = 8};
  request.settings.epochs = 2;
  request.settings.batch = 32;
  request.settings.output = folder / "recall";
  request.warmup = 2;
  return request;
}

Training recall_softmax(const ToyFolder& folder) {
  return training_of(tiny_recall(folder, "softmax"), recall_of);
}
Training recall_hedgehog(const ToyFolder& folder) {
  return training_of(tiny_recall(folder, "hedgehog"), recall_of);
}
Training recall_performer(const ToyFolder& folder) {
  return training_of(tiny_recall(folder, "performer"), recall_of);
}

struct Kind {
  const char* name;
  Training (*make)(const ToyFolder&);
  std::int64_t waits; // a step may have
};

std::ostream& operator<<(std::ostream& stream, const Kind& kind) { return stream << kind.name; }

class TrainingOnDevice : public ::testing::TestWithParam<Kind> {};

// ---- The same as on the CPU -------------------------------------------------------------------------------

struct Result {
  TrainingOutcome outcome;
  std::map<std::string, std::vector<float>> parameters; // of the adapter
};

std::map<std::string, std::vector<float>> stored(const fs::path& adapter) {
  std::map<std::string, std::vector<float>> parameters;
  if (adapter.empty()) return parameters; // of recall
  const SafetensorsFile file = SafetensorsFile::open(adapter);
  for (const auto& [name, view] : file.tensors()) {
    std::vector<c10::Half> halves(view.bytes.size() / sizeof(c10::Half));
    std::memcpy(halves.data(), view.bytes.data(), view.bytes.size());
    parameters[name].assign(halves.begin(), halves.end());
  }
  return parameters;
}

Result result_on(const std::string& device, const Kind& kind) {
  const ToyFolder folder;
  const Training training = kind.make(folder);
  training.settings().execution.device = device;
  Result result{training.run({}, {}), {}};
  result.parameters = stored(result.outcome.adapter.path);
  return result;
}

// Keeps the largest difference.
void measure(double& largest, const double one, const double other, const double scale = 1) {
  EXPECT_EQ(std::isnan(one), std::isnan(other));
  largest = std::max(largest, std::abs(one - other) / std::max(scale, std::abs(other)));
}

TEST_P(TrainingOnDevice, GivesTheLossesAndParametersOfTheCpu) {
  const Result host = result_on("cpu", GetParam()), device = result_on(the_device(), GetParam());
  double losses = 0, validations = 0, parameters = 0;
  ASSERT_EQ(device.outcome.curve.size(), host.outcome.curve.size());
  for (std::size_t i = 0; i < host.outcome.curve.size(); ++i)
    measure(losses, device.outcome.curve[i].second, host.outcome.curve[i].second);
  ASSERT_EQ(device.outcome.validations.size(), host.outcome.validations.size());
  measure(validations, device.outcome.before.loss, host.outcome.before.loss);
  for (std::size_t i = 0; i < host.outcome.validations.size(); ++i) {
    const HeldOut &actual = device.outcome.validations[i], &expected = host.outcome.validations[i];
    measure(validations, actual.loss, expected.loss);
    measure(validations, actual.divergence, expected.divergence);
    EXPECT_EQ(actual.accuracy, expected.accuracy);
  }
  ASSERT_EQ(device.parameters.size(), host.parameters.size());
  for (const auto& [name, expected] : host.parameters) {
    const std::vector<float>& actual = device.parameters.at(name);
    ASSERT_EQ(actual.size(), expected.size()) << name;
    if (name.ends_with("key.bias")) continue; // softmax does not depend on it: its gradient is rounding alone
    for (std::size_t i = 0; i < expected.size(); ++i)
      measure(parameters, static_cast<double>(actual[i]), static_cast<double>(expected[i]));
  }
  std::printf("%s: %zu steps, difference of losses %.1e, validations %.1e, parameters %.1e\n",
              GetParam().name, host.outcome.curve.size(), losses, validations, parameters);
  EXPECT_LT(losses, 1e-4);
  EXPECT_LT(validations, 1e-4);
  // Stored in float16. AdamW takes steps of one size also where the gradient is hardly more than rounding.
  EXPECT_LT(parameters, 2e-3);
}

// ---- Checkpoints ------------------------------------------------------------------------------------------

// Stops a training on one device after a few steps and resumes it on another.
Result interrupted(const Kind& kind, const std::string& first, const std::string& second) {
  const ToyFolder folder;
  const Training training = kind.make(folder);
  training.settings().execution.device = first;
  std::stop_source source;
  const auto stop_early = [&](const TrainingProgress& progress) {
    if (progress.phase == "train" && progress.total_step == 5) source.request_stop();
  };
  EXPECT_TRUE(training.run(stop_early, source.get_token()).stopped);
  training.settings().execution.device = second;
  training.settings().resume = true;
  Result result{training.run({}, {}), {}};
  result.parameters = stored(result.outcome.adapter.path);
  return result;
}

TEST_P(TrainingOnDevice, GoesOnBitForBit) {
  const Result whole = result_on(the_device(), GetParam());
  const Result resumed = interrupted(GetParam(), the_device(), the_device());
  EXPECT_EQ(resumed.outcome.curve, whole.outcome.curve);
  EXPECT_EQ(resumed.outcome.held_out.loss, whole.outcome.held_out.loss);
  EXPECT_EQ(resumed.parameters, whole.parameters);
}

TEST_P(TrainingOnDevice, GoesOnFromACheckpointOfTheCpu) {
  const Result whole = result_on("cpu", GetParam());
  for (const auto& [first, second] : {std::pair<std::string, std::string>{"cpu", the_device()},
                                      std::pair<std::string, std::string>{the_device(), "cpu"}}) {
    const Result resumed = interrupted(GetParam(), first, second);
    double losses = 0;
    ASSERT_EQ(resumed.outcome.curve.size(), whole.outcome.curve.size());
    for (std::size_t i = 0; i < whole.outcome.curve.size(); ++i)
      measure(losses, resumed.outcome.curve[i].second, whole.outcome.curve[i].second);
    EXPECT_LT(losses, 1e-3);
  }
}

// ---- Waits ------------------------------------------------------------------------------------------------

TEST_P(TrainingOnDevice, WaitsForTheDeviceAFewTimesAStep) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device counts waits";
  const ToyFolder folder;
  const Training training = GetParam().make(folder);
  training.settings().execution.device = the_device();
  training.settings().validate_every = 0;
  training.settings().checkpoint_seconds = 3600;
  std::int64_t most = 0, steps = 0;
  std::unique_ptr<const test::DeviceCounter> counter;
  training.run(
      [&](const TrainingProgress& progress) {
        if (progress.phase != "train") {
          counter.reset(); // what follows is a validation, or the first step after one
          return;
        }
        if (counter && progress.step > 1) {
          most = std::max(most, counter->counts().waits());
          ++steps;
        }
        counter = std::make_unique<const test::DeviceCounter>();
      },
      {});
  std::printf("%s: %lld waits a step\n", GetParam().name, static_cast<long long>(most));
  EXPECT_GT(steps, 2);
  EXPECT_LE(most, GetParam().waits);
}

INSTANTIATE_TEST_SUITE_P(All, TrainingOnDevice,
                         // One for the loss and the gradients' norms. Distillation has two for the pass of
                         // the frozen model: whether it is finite, and its times. The causal form of a
                         // logarithmic map chooses its path by its numbers, in each of the two layers.
                         ::testing::Values(Kind{"distil_texts", distil_texts, 3},
                                           Kind{"distil_pictures", distil_pictures, 3},
                                           Kind{"finetune_layers", finetune_layers, 1},
                                           Kind{"finetune_new_pictures", finetune_new_pictures, 1},
                                           Kind{"finetune_cached_parts", finetune_cached_parts, 1},
                                           Kind{"finetune_low_rank", finetune_low_rank, 1},
                                           Kind{"finetune_from_a_teacher", finetune_from_a_teacher, 1},
                                           Kind{"finetune_texts", finetune_texts, 1},
                                           Kind{"finetune_embeddings", finetune_embeddings, 1},
                                           Kind{"recall_softmax", recall_softmax, 1},
                                           Kind{"recall_hedgehog", recall_hedgehog, 3},
                                           Kind{"recall_performer", recall_performer, 3}),
                         [](const auto& kind) { return std::string(kind.param.name); });

// The waits of a validation and of the test do not grow with layers or sequences within a batch.
TEST(RecallOnDevice, MeasuresWhatTheCpuMeasures) {
  const ToyFolder folder;
  for (const char* kernel : {"softmax", "relu", "hydra-cosine"}) {
    RecallRequest request = tiny_recall(folder, kernel);
    request.settings.epochs = 1;
    const RecallOutcome host = recall(request);
    request.settings.execution.device = the_device();
    const RecallOutcome device = recall(request);
    EXPECT_NEAR(device.loss, host.loss, 1e-3);
    EXPECT_EQ(device.accuracy, host.accuracy);
    EXPECT_EQ(device.zero_denominators, host.zero_denominators);
    ASSERT_EQ(device.entropy.has_value(), host.entropy.has_value());
    if (host.entropy) {
      EXPECT_NEAR(*device.entropy, *host.entropy, 1e-3);
    }
    ASSERT_EQ(device.layer_entropies.size(), host.layer_entropies.size());
  }
}

// ---- Memory and errors ------------------------------------------------------------------------------------

FinetuneRequest hydra_on_the_device(const ToyFolder& folder) {
  FinetuneRequest request = testing::toy_finetuning(folder);
  request.schedule = ScheduleText{.replace = {"back:1=hydra-cosine"}};
  request.settings.execution.device = the_device();
  return request;
}

TEST(DeviceTraining, SaysThatTheMemoryDoesNotSufficeAndGoesOnLater) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's memory can be limited";
  const Result whole = result_on(the_device(), {"finetune_layers", finetune_layers, 1});
  const ToyFolder folder;
  const Training training = finetune_layers(folder);
  training.settings().execution.device = the_device();
  training.settings().checkpoint_seconds = 0;
  const test::DeviceCounter counter;
  std::unique_ptr<test::DeviceMemoryLimit> limit;
  const auto fill_memory = [&](const TrainingProgress& progress) {
    if (progress.phase == "train" && progress.total_step == 5)
      limit = std::make_unique<test::DeviceMemoryLimit>(0);
  };
  EXPECT_THAT([&] { training.run(fill_memory, {}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("out of memory on fake:0"), HasSubstr("--batch"))));
  EXPECT_GE(counter.counts().caches_emptied, 1);
  limit.reset();
  training.settings().resume = true;
  const TrainingOutcome resumed = training.run({}, {});
  EXPECT_EQ(resumed.curve, whole.outcome.curve);
  EXPECT_EQ(stored(resumed.adapter.path), whole.parameters);
}

// CUDA's libraries have no exception of their own for it.
TEST(DeviceTraining, TriesAStepAgainWhereALibraryLacksMemory) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's kernels can be broken";
  const ToyFolder folder;
  const test::DeviceCounter counter;
  std::unique_ptr<testing_inputs::BrokenKernels> broken;
  const auto break_library = [&](const TrainingProgress& progress) {
    if (progress.phase == "train" && progress.total_step == 1)
      broken = std::make_unique<testing_inputs::BrokenKernels>(
          "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`");
  };
  EXPECT_THAT([&] { finetune(hydra_on_the_device(folder), break_library); },
              ThrowsMessage<Error>(AllOf(HasSubstr("out of memory on fake:0"), HasSubstr("--batch"))));
  EXPECT_EQ(counter.counts().caches_emptied, 1);
}

TEST(DeviceTraining, NamesTheDeviceOfAutoWhoseMemoryDoesNotSuffice) {
  const auto train = [] {
    training::with_errors_of("distill", "auto", [] { C10_THROW_ERROR(OutOfMemoryError, "no memory"); });
  };
  EXPECT_THAT(train,
              ThrowsMessage<Error>(HasSubstr("out of memory on " + automatic_device().device.str() + ";")));
}

TEST(DeviceTraining, AsksForARestartWhereTheDeviceDoesNoFurtherWork) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's kernels can be broken";
  const ToyFolder folder;
  const testing_inputs::BrokenKernels broken;
  EXPECT_THAT([&] { finetune(hydra_on_the_device(folder)); },
              ThrowsMessage<Error>(AllOf(HasSubstr("illegal memory access"), Not(HasSubstr("\n")),
                                         HasSubstr("; restart the program"))));
}

TEST(DeviceTraining, NamesADeviceThatIsNotThere) {
  const ToyFolder folder;
  FinetuneRequest request = testing::toy_finetuning(folder);
  for (const char* device : {"fake:7", "abacus"}) {
    request.settings.execution.device = device;
    EXPECT_THAT([&] { finetune(request); }, ThrowsMessage<UsageError>(HasSubstr(device)));
  }
}

// A model of a checkpoint that was trained and stored on the device is one for the CPU, too.
TEST(DeviceTraining, IsEvaluatedOnEither) {
  const ToyFolder folder;
  FinetuneRequest request = two_epochs(folder);
  request.settings.epochs = 6;
  request.settings.execution.device = the_device();
  const TrainingOutcome outcome = finetune(request);
  EvaluateRequest evaluation;
  evaluation.model_folder = request.settings.model_folder;
  evaluation.adapters = {.automatic = false, .files = {request.settings.output}};
  evaluation.data = request.data.front();
  const EvaluateOutcome host = evaluate(evaluation);
  evaluation.execution.device = the_device();
  EXPECT_EQ(evaluate(evaluation).top1, host.top1);
  EXPECT_GE(host.top1, outcome.held_out.accuracy - 0.2);
}

} // namespace
} // namespace hydrascope
