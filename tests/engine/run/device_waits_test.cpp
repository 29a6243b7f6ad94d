// How often a run waits for the device: a number that does not grow with the layers.
#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

#include "engine/run/placement.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/quantities/layer_times.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/quantities/vectors.h"
#include "engine/run/quantities/weight_tile.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

// The waits of the second of two equal runs of a model with so many layers; the first one moves the model.
// Nothing is cached.
std::int64_t waits_of(RunRequest request, int layers) {
  FakeOptions options;
  options.layers = layers;
  const auto model = std::make_shared<const FakeModel>(options);
  Runner runner(0, fake_source(model));
  const Placement placement{test::fake_device(), c10::kFloat};
  runner.run_in(placement, request);
  const test::DeviceCounter counter;
  runner.run_in(placement, request);
  return counter.counts().waits();
}

void expect_waits(const char* name, const RunRequest& request, std::int64_t most) {
  const std::int64_t few = waits_of(request, 2), many = waits_of(request, 8);
  EXPECT_EQ(few, many) << name << ": the waits grow with the layers";
  EXPECT_LE(many, most) << name;
  std::printf("%s: %lld waits\n", name, static_cast<long long>(many));
}

TEST(DeviceWaits, OfAPassDoNotGrowWithItsLayers) {
  for (const char* kernel : {"softmax", "hydra-cosine", "relu", "hedgehog", "performer", "cosformer"}) {
    RunRequest request = fake_request("the cat sat on the warm mat");
    request.schedule = ScheduleText{.kernel = kernel};
    // Block times, zero denominators, whether the output is finite, predictions.
    expect_waits(kernel, request, 4);
    request.hidden_tokens = {3};
    // The same of the whole input, but for whether it is finite, and the similarity of both.
    expect_waits("a masked token", request, 8);
  }
}

TEST(DeviceWaits, ResultsComeOverTogether) {
  RunRequest request = fake_request("the cat sat on the warm mat");
  request.quantities = {RolloutKey{}};
  const std::int64_t one = waits_of(request, 4);
  for (int layer = 0; layer < 3; ++layer) {
    request.quantities.add(AttentionRowKey{.layer = layer, .query = 1});
    TileKey tile;
    tile.layer = layer;
    tile.rows = tile.columns = 2;
    request.quantities.add(tile);
    request.quantities.add(VectorsKey{.layer = layer, .kernel = KernelSpec{"hydra-cosine", {}}});
  }
  request.quantities.add(HiddenStatesKey{});
  request.quantities.add(HiddenNormsKey{});
  request.quantities.add(LogitsKey{});
  request.quantities.add(SimilarHeadsKey{{1, 1}});
  EXPECT_EQ(waits_of(request, 4), one);
  request.quantities.add(WeightsKey{.layer = 0}); // is checked against the kernel's output by a number
  EXPECT_EQ(waits_of(request, 4), one + 1);
}

TEST(DeviceWaits, OfQuantities) {
  RunRequest request = fake_request("the cat sat on the warm mat");
  request.quantities = {RolloutKey{}};
  expect_waits("rollout", request, 5);
  request.quantities = {HiddenNormsKey{}};
  expect_waits("hidden norms", request, 5);
  for (const char* name : {"entropy", "distance", "sink"}) {
    request.quantities = {HeadTableKey{.quantity = name}};
    expect_waits(name, request, 5);
  }
  request.quantities = {LayerTimesKey{.passes = 3}};
  expect_waits("four timed passes", request, 4 + 4 * 2);
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "LibTorch takes gradients on one accelerator alone";
  request.quantities = {FocusKey{0}};
  // Beside the pass: the predicted class, the target, whether the first token is read alone, the map's sums,
  // the results.
  expect_waits("focus map", request, 4 + 5);
}

} // namespace
} // namespace hydrascope
