// Runs on an accelerator against the same runs on the CPU: every quantity of every architecture, adapters,
// hidden tokens and muted heads, and how often a run waits for the device.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/models/transformer/model.h"
#include "engine/run/pass.h"
#include "engine/run/placement.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/layer_times.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/quantities/vectors.h"
#include "engine/run/quantities/weight_tile.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"
#include "tests/engine/run/read_result.h"
#include "tests/support/checkout.h"
#include "tests/support/devices.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

constexpr double tolerance = 1e-4; // of the largest number: fused on the CPU, composed on the device

Placement on_device() { return {test::accelerator(), c10::kFloat}; }

// Compares the results of two runs and counts the comparisons.
class Comparison {
public:
  Comparison(const RunResult& device, const RunResult& host) : device_(device), host_(host) {}

  static std::int64_t count() { return count_; }

  void same(double actual, double expected, const char* name, double scale = 1) const {
    ++count_;
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(actual)) << name;
    else
      EXPECT_NEAR(actual, expected, tolerance * std::max(scale, std::abs(expected))) << name;
  }

  // `least`: of the numbers that the values are differences of.
  void same(const Array& actual, const Array& expected, const char* name, double least = 1e-6) const {
    ++count_;
    ASSERT_EQ(actual.shape, expected.shape) << name;
    double worst = 0, largest = least;
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      const double one = static_cast<double>(actual.values[i]),
                   other = static_cast<double>(expected.values[i]);
      ASSERT_EQ(std::isnan(one), std::isnan(other)) << name << " " << i;
      if (std::isnan(other)) continue;
      worst = std::max(worst, std::abs(one - other));
      largest = std::max(largest, std::abs(other));
    }
    EXPECT_LE(worst, tolerance * largest) << name;
  }

  // Means over rows of Spearman's ρ, by head. Rounding may swap two neighbouring ranks: in one row of one
  // head that changes its mean by at most 6·2(n−1)/(n(n²−1)) over n rows, n the tokens that are seen.
  void same_ranks(const Array& actual, const Array& expected, const char* name) const {
    ++count_;
    ASSERT_EQ(actual.shape, expected.shape) << name;
    const auto n = static_cast<double>(host_.tokens.size() - host_.hidden_tokens.size());
    int swapped = 0;
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      const double one = static_cast<double>(actual.values[i]),
                   other = static_cast<double>(expected.values[i]);
      ASSERT_EQ(std::isnan(one), std::isnan(other)) << name << " " << i;
      if (std::isnan(other) || std::abs(one - other) <= tolerance) continue;
      ++swapped;
      EXPECT_LE(std::abs(one - other), tolerance + 12 / (n * (n + 1)) / n) << name << " " << i;
    }
    EXPECT_LE(swapped, 1) << name;
  }

  // Calls `compare(device's, CPU's)` for every result of this type; there must be one.
  template <KeyOfQuantity K, typename Compare>
  void each(const Compare& compare) const {
    const auto results = host_.quantities.all<K>();
    EXPECT_FALSE(results.empty());
    for (const auto& entry : results) {
      const auto* const actual = device_.quantities.find(entry.key);
      ASSERT_NE(actual, nullptr);
      compare(*actual, *entry.result);
    }
  }

  void facts() const {
    ASSERT_EQ(device_.predictions.size(), host_.predictions.size());
    for (std::size_t i = 0; i < host_.predictions.size(); ++i)
      same(device_.predictions[i].probability, host_.predictions[i].probability, "probability");
    ASSERT_EQ(device_.layers.size(), host_.layers.size());
    for (std::size_t i = 0; i < host_.layers.size(); ++i)
      EXPECT_EQ(device_.layers[i].zero_denominators, host_.layers[i].zero_denominators);
    EXPECT_EQ(device_.query, host_.query);
    EXPECT_EQ(device_.target, host_.target);
    same(device_.target_value, host_.target_value, "target");
    if (host_.whole) same(device_.whole->similarity, host_.whole->similarity, "similarity");
    EXPECT_EQ(device_.device, test::accelerator().str());
    EXPECT_EQ(host_.device, "cpu");
  }

private:
  static inline std::int64_t count_ = 0;
  const RunResult& device_;
  const RunResult& host_;
};

fs::path golden(const std::string& name) { return test::source_folder() / "tests/golden" / name; }

RunRequest request_for(const std::string& model, const std::string& kernel) {
  RunRequest request;
  request.execution.device = "cpu";
  request.model_folder = golden("models/" + model);
  if (model.starts_with("bert"))
    request.input = TextInput{"the cat sat on a mat", std::nullopt};
  else
    request.input =
        ImageInput{std::make_shared<const Image>(load_image(golden("images/pictures/gradient.png"))), "", {}};
  request.schedule = ScheduleText{.replace = {"back:1=" + kernel}};
  return request;
}

// Every quantity, of the schedule's kernels and, where it compares, of others.
QuantityKeys all_quantities(int layers) {
  QuantityKeys keys{LogitsKey{},
                    HiddenStatesKey{},
                    HiddenNormsKey{},
                    RolloutKey{},
                    RolloutKey{.heads = {1}, .discard = 0.3},
                    LayerTimesKey{.passes = 1},
                    DeletionKey{.layer = layers - 1, .steps = 2},
                    SimilarHeadsKey{{layers - 1, 1}}};
  const std::vector<std::optional<KernelSpec>> kernels{
      std::nullopt, KernelSpec{"hydra-cosine", {}}, KernelSpec{"hedgehog", {}}, KernelSpec{"performer", {}}};
  for (int layer = 0; layer < layers; ++layer) {
    keys.add(FocusKey{layer});
    keys.add(AttentionRowKey{.layer = layer, .query = 1});
    keys.add(AttentionRowKey{.layer = layer});
    for (const auto& kernel : kernels)
      for (const bool forced : {false, true}) {
        keys.add(WeightsKey{.layer = layer, .kernel = kernel, .rows = {0, 3}, .teacher_forced = forced});
        keys.add(VectorsKey{.layer = layer,
                            .kernel = kernel,
                            .head = 1,
                            .query = 2,
                            .teacher_forced = forced,
                            .gradient = true});
      }
    keys.add(WeightsKey{.layer = layer, .value_weighted = true});
    TileKey tile;
    tile.layer = layer;
    tile.rows = 3;
    keys.add(tile);
    tile.heads = {1};
    tile.columns = 2;
    tile.value_weighted = true;
    keys.add(tile);
    tile = {};
    tile.layer = layer;
    tile.kernel = {"relu", {}};
    tile.fusion = HeadFusion::max;
    keys.add(tile);
  }
  for (const HeadQuantityInfo& info : head_quantity_infos()) {
    keys.add(HeadTableKey{info.name});
    keys.add(HeadTableKey{info.name, KernelSpec{"hedgehog", {}}});
    keys.add(HeadTableKey{info.name, KernelSpec{"elu", {}}});
  }
  return keys;
}

void compare_all(const RunResult& device, const RunResult& host) {
  const Comparison comparison(device, host);
  comparison.facts();
  const auto arrays = [&](const char* name) {
    return [&comparison, name](const Array& a, const Array& b) { comparison.same(a, b, name); };
  };
  comparison.each<LogitsKey>(arrays("logits"));
  comparison.each<HiddenNormsKey>(arrays("norms"));
  comparison.each<HiddenStatesKey>([&](const auto& a, const auto& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < b.size(); ++i) comparison.same(a[i], b[i], "hidden");
  });
  comparison.each<FocusKey>([&](const FocusResult& a, const FocusResult& b) {
    comparison.same(a.contributions, b.contributions, "focus map");
    comparison.same(a.total, b.total, "total");
    comparison.same(a.share, b.share, "share");
    EXPECT_EQ(a.zero_gradient, b.zero_gradient);
  });
  comparison.each<AttentionRowKey>(
      [&](const auto& a, const auto& b) { comparison.same(a.weights, b.weights, "row"); });
  comparison.each<WeightsKey>([&](const WeightsResult& a, const WeightsResult& b) {
    comparison.same(a.weights, b.weights, "weights");
    EXPECT_LT(a.check, 1e-4);
  });
  comparison.each<TileKey>(
      [&](const auto& a, const auto& b) { comparison.same(a.values, b.values, "tile"); });
  comparison.each<RolloutKey>(
      [&](const auto& a, const auto& b) { comparison.same(a.weights, b.weights, "rollout"); });
  comparison.each<SimilarHeadsKey>(
      [&](const auto& a, const auto& b) { comparison.same(a.distances, b.distances, "similar heads"); });
  comparison.each<VectorsKey>([&](const VectorsResult& a, const VectorsResult& b) {
    for (const auto member : {&VectorsResult::q, &VectorsResult::k, &VectorsResult::query_feature,
                              &VectorsResult::key_features, &VectorsResult::query_features,
                              &VectorsResult::values, &VectorsResult::global, &VectorsResult::gradient})
      comparison.same(a.*member, b.*member, "vectors");
  });
  comparison.each<HeadTableKey>([&](const HeadTable& a, const HeadTable& b) {
    if (b.key.quantity == "monotonicity")
      comparison.same_ranks(a.values, b.values, "monotonicity");
    else // KL is a difference of numbers near 1 in float32, itself perhaps 1e-4.
      comparison.same(a.values, b.values, b.key.quantity.c_str(), 1e-2);
    comparison.same(a.clamped_share, b.clamped_share, "clamped");
  });
  comparison.each<DeletionKey>([&](const DeletionResult& a, const DeletionResult& b) {
    for (const auto curve :
         {&DeletionResult::most_first, &DeletionResult::least_first, &DeletionResult::random})
      for (std::size_t i = 0; i < b.random.values.size(); ++i)
        comparison.same((a.*curve).values[i], (b.*curve).values[i], "deletion");
  });
  comparison.each<LayerTimesKey>([&](const auto& a, const auto& b) {
    ASSERT_EQ(a.size(), b.size());
    for (const double seconds : a.front()) EXPECT_GT(seconds, 0);
  });
}

struct Setting {
  std::string model, kernel;
  std::optional<int> image_size = {}; // positions are interpolated
};

class RunsOnDevice : public testing::TestWithParam<Setting> {
protected:
  static void TearDownTestSuite() {
    std::printf("%lld comparisons of runs with the CPU\n", static_cast<long long>(Comparison::count()));
  }
  int layers() const { return read_model_info(golden("models/" + GetParam().model)).layers; }
};

TEST_P(RunsOnDevice, GiveTheNumbersOfTheCpu) {
  RunRequest request = request_for(GetParam().model, GetParam().kernel);
  request.execution.image_size = GetParam().image_size;
  request.quantities = all_quantities(layers());
  Runner runner; // one cache: hidden states of one device must not reach the other
  const auto host = runner.run(request);
  const auto device = runner.run_in(on_device(), request);
  compare_all(*device, *host);
}

TEST_P(RunsOnDevice, HideTokensAndMuteHeads) {
  RunRequest request = request_for(GetParam().model, GetParam().kernel);
  request.execution.image_size = GetParam().image_size;
  request.quantities = all_quantities(layers());
  request.hidden_tokens = {3, 4};
  request.muted_heads = {{0, 0}, {0, 1}, {1, 1}}; // all of layer 0
  request.default_query = false;
  Runner runner;
  const auto host = runner.run(request);
  compare_all(*runner.run_in(on_device(), request), *host);
}

INSTANTIATE_TEST_SUITE_P(All, RunsOnDevice,
                         testing::Values(Setting{"vit", "hydra-cosine"}, Setting{"vit", "hedgehog", 20},
                                         Setting{"deit", "elu"},
                                         Setting{"deit-distilled", "hydra-tanh-l2-ln"},
                                         Setting{"dinov2", "t2r"}, Setting{"bert", "hedgehog"},
                                         Setting{"bert", "performer"}, Setting{"bert-mlm", "elu"},
                                         Setting{"bert", "local-window"}),
                         [](const auto& setting) {
                           std::string name = setting.param.model + "_" + setting.param.kernel;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(RunOnDevice, MeasuresTheSimilarityOfSentences) {
  RunRequest request = request_for("bert", "hedgehog");
  request.target = parse_target("similarity:a dog lay on the floor");
  request.quantities = {FocusKey{0}};
  Runner runner;
  const auto host = runner.run(request), device = runner.run_in(on_device(), request);
  Comparison(*device, *host).facts();
  EXPECT_NE(host->target_value, 0);
}

TEST(RunOnDevice, AppliesAdaptersWithTrainedMaps) {
  Runner runner;
  int adapters = 0;
  for (const auto& entry : fs::directory_iterator(golden("adapters"))) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    RunRequest request = request_for(name.substr(0, name.find('-')), "softmax");
    request.adapters = {.automatic = false, .files = {entry.path()}};
    request.schedule = ScheduleText{.kernel = read_adapter_info(entry.path()).layers.front().kernel.text()};
    request.quantities = {LogitsKey{}, LayerTimesKey{.passes = 2}}; // the third pass has folded the maps
    const auto host = runner.run(request), device = runner.run_in(on_device(), request);
    EXPECT_FALSE(device->layers.front().untrained);
    Comparison(*device, *host)
        .same(test::read(*device, LogitsKey{}), test::read(*host, LogitsKey{}), "logits");
    ++adapters;
  }
  EXPECT_GT(adapters, 20);
}

TEST(RunOnDevice, ComputesInBfloat16) {
  RunRequest request = request_for("vit", "hydra-cosine");
  request.quantities = {LogitsKey{}};
  Runner runner;
  const auto device = runner.run_in({test::accelerator(), c10::kBFloat16}, request);
  EXPECT_EQ(device->dtype, "bfloat16");
  request.execution.dtype = "bfloat16";
  const auto host = runner.run(request);
  for (std::size_t i = 0; i < test::logits(*host).size(); ++i)
    EXPECT_NEAR(test::logits(*device)[i], test::logits(*host)[i], 0.05);
}

} // namespace
} // namespace hydrascope
