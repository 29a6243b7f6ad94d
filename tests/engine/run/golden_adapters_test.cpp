// Random adapters over the golden models, run as `hydrascope run --adapter` does on every device, in half
// types off the CPU, too, against transformers with
// tools/load_adapter.py (tools/golden/make_adapters.py), which tools/golden/check_adapters.py holds to the
// kernels' formulas.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/run/placement.h"
#include "engine/run/runner.h"
#include "tests/engine/models/golden.h"
#include "tests/engine/run/read_result.h"
#include "tests/support/checkout.h"
#include "tests/support/devices.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

const fs::path golden = test::source_folder() / "tests/golden";

// The largest difference over the largest expected value.
double error_of(const Array& found, const SafetensorsFile& file, const std::string& name) {
  const auto& expected = file.tensors().at(name);
  EXPECT_EQ(found.shape, expected.shape) << name;
  EXPECT_EQ(found.values.size() * sizeof(float), expected.bytes.size()) << name;
  std::vector<float> values(found.values.size());
  std::memcpy(values.data(), expected.bytes.data(),
              std::min(expected.bytes.size(), values.size() * sizeof(float)));
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(std::isfinite(found.values[i])) << name;
    worst = std::max(worst, std::abs(static_cast<double>(found.values[i]) - static_cast<double>(values[i])));
    largest = std::max(largest, std::abs(static_cast<double>(values[i])));
  }
  return worst / largest;
}

std::vector<std::string> adapter_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(golden / "adapters"))
    if (entry.is_regular_file()) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The devices and types that the adapters run in, with the error that is allowed: three times the largest
// that was measured on the CPU and on the fake device, whose operators are the CPU's; a GPU sums in another
// order.
struct Run {
  Placement placement;
  double tolerance = 0;
};

std::vector<Run> runs() {
  std::vector<Run> all;
  for (const c10::Device device : test::devices()) {
    all.push_back({{device, c10::kFloat}, device.is_cuda() ? 2e-5 : 2.6e-6});
    if (device.is_cpu()) continue;
    all.push_back({{device, c10::kHalf}, 1e-2});
    all.push_back({{device, c10::kBFloat16}, 0.17});
  }
  return all;
}

class GoldenAdapters : public ::testing::TestWithParam<std::string> {
protected:
  static void TearDownTestSuite() { test::print_comparisons(); }
};

TEST_P(GoldenAdapters, RunAsTransformersRunsThem) {
  const std::string& name = GetParam();
  const SafetensorsFile expected = SafetensorsFile::open(golden / "adapters/expected/expected.safetensors");
  const fs::path file = golden / "adapters" / (name + ".safetensors");
  RunRequest request;
  const std::string model = name.substr(0, name.find('-'));
  request.model_folder = golden / "models" / model;
  request.adapters = {.automatic = false, .files = {file}};
  // That of both layers.
  request.schedule = ScheduleText{.kernel = read_adapter_info(file).layers.front().kernel.text()};
  if (model == "bert")
    request.input = TextInput{expected.metadata().at("text"), std::nullopt};
  else
    request.input =
        ImageInput{std::make_shared<const Image>(load_image(golden / "images/pictures/gradient.png")),
                   "gradient.png",
                   {}};
  request.quantities = {LogitsKey{}, HiddenStatesKey{}};
  Runner runner;
  for (const auto& [placement, tolerance] : runs()) {
    SCOPED_TRACE(placement.device_name() + " " + placement.dtype_name());
    const auto result = runner.run_in(placement, request);
    EXPECT_LE(error_of(test::read(*result, LogitsKey{}), expected, name + ".logits"), tolerance);
    EXPECT_LE(error_of(test::read(*result, HiddenStatesKey{}).at(2), expected, name + ".hidden.2"),
              tolerance);
    for (int i = 0; i < 2; ++i) test::count_comparison(placement.device);
  }
}

// A weight of a block, of a feature map and of the classifier, which comes after the last hidden state.
TEST(GoldenAdapter, WhoseWeightsAreNotNumbersIsRefusedByName) {
  const SafetensorsFile good = SafetensorsFile::open(golden / "adapters/bert-hedgehog.safetensors");
  const SafetensorsFile model = SafetensorsFile::open(golden / "models/bert/model.safetensors");
  auto whole = good.tensors();
  whole["classifier.bias"] = model.tensors().at("classifier.bias");
  const auto of_map = std::ranges::find_if(
      whole, [](const auto& tensor) { return tensor.first.starts_with("kernel.1.hedgehog."); });
  ASSERT_NE(of_map, whole.end());
  for (const std::string& name : {std::string("encoder.layer.1.attention.output.dense.bias"), of_map->first,
                                  std::string("classifier.bias")}) {
    SCOPED_TRACE(name);
    auto tensors = whole;
    std::vector<std::byte> bytes(tensors.at(name).bytes.begin(), tensors.at(name).bytes.end());
    std::ranges::fill(bytes, std::byte{0xFF}); // NaN in half and in single precision
    tensors.at(name).bytes = bytes;
    const test::ScratchFolder folder;
    write_safetensors(folder / "bad.safetensors", tensors, good.metadata());
    RunRequest request;
    request.model_folder = golden / "models/bert";
    request.adapters = {.automatic = false, .files = {folder / "bad.safetensors"}};
    request.schedule = ScheduleText{.kernel = "hedgehog"};
    request.input = TextInput{"the cat", std::nullopt};
    EXPECT_THAT(test::message_of<BrokenFile>([&] { Runner().run(request); }),
                ::testing::HasSubstr("\"" + name + "\" holds NaN or infinity"));
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenAdapters, ::testing::ValuesIn(adapter_names()), test_name);

} // namespace
} // namespace hydrascope
