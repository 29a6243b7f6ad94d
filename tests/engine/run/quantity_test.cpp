// Keys and what is found under them, and a quantity of the test's own that a runner reads: what a quantity
// needs is one file.
#include "engine/run/quantity.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/reading.h"
#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"
#include "tests/engine/run/read_result.h"

namespace hydrascope {
namespace {

// ---- A quantity
// ---------------------------------------------------------------------------------------------

// Which layers a reading has seen, and by which kernel the pass ran them.
struct SeenLayers {
  std::vector<int> layers;
  std::vector<std::string> kernels;
  std::string compared;   // the kernel that was asked for
  std::size_t states = 0; // hidden states at the end
};

struct SeenLayersKey {
  using Result = SeenLayers;

  int first = 0; // layers before it are not looked at
  std::optional<KernelSpec> kernel = {};
  bool teacher_forced = false;
  double bytes = 0;
  bool broken = false;

  bool operator==(const SeenLayersKey&) const = default;
};
const Quantity& quantity_of(const SeenLayersKey& key);

class SeenLayersReading final : public Reading {
public:
  SeenLayersReading(const SeenLayersKey& key, const LayerKernel& kernel) : key_(key) {
    seen_.compared = kernel.kernel->spec().text();
  }

  bool teacher_forced() const override { return key_.teacher_forced; }
  bool needs_hidden() const override { return true; }
  bool taps(int layer) const override { return layer >= key_.first; }
  void read(const LayerTap& layer) override {
    if (key_.broken) throw Error("layers", "cannot be seen", "look elsewhere");
    seen_.layers.push_back(layer.layer);
    seen_.kernels.push_back(layer.kernel().kernel->spec().text());
  }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    seen_.states = pass.outcome.hidden.size();
    results.add(key_, std::move(seen_));
  }

private:
  SeenLayersKey key_;
  SeenLayers seen_;
};

// How often keys of this type were planned over a runner's life.
struct SeenLayersCache {
  int planned = 0;
};
int planned_last = 0;

class SeenLayersQuantity final : public QuantityOf<SeenLayersKey> {
  void check_key(const SeenLayersKey& key, const RunShape& shape) const override {
    check_below("layer", key.first, shape.layers, "layers");
  }
  double key_bytes(const SeenLayersKey& key, const ModelInfo& model, std::int64_t tokens) const override {
    return key.bytes * model.width * static_cast<double>(tokens);
  }
  bool key_compares(const SeenLayersKey& key, const Schedule& schedule) const override {
    return is_another_kernel(schedule, key.first, key.kernel);
  }
  std::unique_ptr<Reading> reading(const SeenLayersKey& key, const PlanContext& context) const override {
    planned_last = ++context.caches.get<SeenLayersCache>().planned;
    return std::make_unique<SeenLayersReading>(key,
                                               context.kernel(key.teacher_forced, key.first, key.kernel));
  }
};

const Quantity& quantity_of(const SeenLayersKey& /*key*/) {
  static const SeenLayersQuantity quantity;
  return quantity;
}

// ---- Keys
// ---------------------------------------------------------------------------------------------------

const WeightsKey kAllRows{.layer = 1};
const WeightsKey kSomeRows{.layer = 1, .rows = {0, 3}};
const WeightsKey kSpacedRows{.layer = 1, .most_rows = 2};

std::vector<int> layers_of(const QuantityKeys& keys) {
  std::vector<int> layers;
  for (const QuantityKey& key : keys) layers.push_back(key.get<FocusKey>()->layer);
  return layers;
}

TEST(QuantityKey, EqualsOneOfTheSameTypeAndValue) {
  const QuantityKey key = FocusKey{2};
  EXPECT_EQ(key, QuantityKey(FocusKey{2}));
  EXPECT_EQ(key, QuantityKey(key));
  EXPECT_NE(key, QuantityKey(FocusKey{3}));
  EXPECT_NE(key, QuantityKey(SeenLayersKey{2}));
  EXPECT_NE(QuantityKey(PixelsKey{}), QuantityKey(LogitsKey{}));
  EXPECT_EQ(QuantityKey(PixelsKey{}), QuantityKey(PixelsKey{}));
  ASSERT_NE(key.get<FocusKey>(), nullptr);
  EXPECT_EQ(key.get<FocusKey>()->layer, 2);
  EXPECT_EQ(key.get<SeenLayersKey>(), nullptr);
  EXPECT_EQ(&QuantityKey(SeenLayersKey{2}).quantity(), &quantity_of(SeenLayersKey{}));
}

TEST(QuantityKey, OfAllRowsServesSomeOfThemAndNotTheReverse) {
  const QuantityKey all = kAllRows, some = kSomeRows;
  EXPECT_TRUE(all.covers(some));
  EXPECT_FALSE(some.covers(all));
  EXPECT_TRUE(all.covers(all));
  EXPECT_TRUE(some.covers(QuantityKey(kSomeRows)));
  EXPECT_TRUE(all.covers(kSpacedRows));
  EXPECT_TRUE(QuantityKey(kSpacedRows).covers(kSpacedRows));
  for (const WeightsKey& other : {kAllRows, kSomeRows, WeightsKey{.layer = 1, .most_rows = 3}})
    EXPECT_FALSE(QuantityKey(kSpacedRows).covers(other));
  EXPECT_FALSE(some.covers(WeightsKey{.layer = 1, .rows = {0}}));
  EXPECT_FALSE(all.covers(WeightsKey{.layer = 2, .rows = {0, 3}}));
  EXPECT_FALSE(all.covers(WeightsKey{.layer = 1, .kernel = KernelSpec{}, .rows = {0, 3}}));
  EXPECT_FALSE(all.covers(WeightsKey{.layer = 1, .rows = {0, 3}, .teacher_forced = true}));
  EXPECT_FALSE(all.covers(WeightsKey{.layer = 1, .rows = {0, 3}, .value_weighted = true}));
  // Where a type says nothing of parts: what is equal.
  const QuantityKey focus = FocusKey{1};
  EXPECT_TRUE(focus.covers(FocusKey{1}));
  EXPECT_FALSE(focus.covers(FocusKey{2}));
  EXPECT_FALSE(focus.covers(all));
}

TEST(QuantityKeys, KeepTheirOrderAndDropWhatIsServed) {
  QuantityKeys keys = {FocusKey{3}, FocusKey{1}, FocusKey{3}};
  keys.add(FocusKey{2});
  keys.add(FocusKey{1});
  keys.add(QuantityKeys{FocusKey{2}, FocusKey{0}});
  EXPECT_THAT(layers_of(keys), testing::ElementsAre(3, 1, 2, 0));
  EXPECT_EQ(keys.size(), 4U);

  QuantityKeys weights = {kAllRows};
  weights.add(kSomeRows);
  EXPECT_EQ(weights.size(), 1U);
  EXPECT_TRUE(weights.covers(kSomeRows));
  EXPECT_TRUE(QuantityKeys().empty());
  EXPECT_FALSE(QuantityKeys().covers(kSomeRows));
}

TEST(QuantityKeys, AreToldApartByType) {
  const QuantityKeys keys = {FocusKey{3}, kAllRows, FocusKey{1}, SeenLayersKey{}};
  const std::vector<FocusKey> focus = keys.of<FocusKey>();
  ASSERT_EQ(focus.size(), 2U);
  EXPECT_EQ(focus[0], FocusKey{3});
  EXPECT_EQ(focus[1], FocusKey{1});
  EXPECT_EQ(keys.of<WeightsKey>().size(), 1U);
  EXPECT_TRUE(keys.of<LogitsKey>().empty());
}

TEST(QuantityKeys, OfWhichTheOthersServeNoneAreMissing) {
  const QuantityKeys wanted = {FocusKey{3}, FocusKey{1}, FocusKey{2}};
  EXPECT_THAT(layers_of(wanted.missing_in({FocusKey{1}, FocusKey{5}})), testing::ElementsAre(3, 2));
  EXPECT_THAT(layers_of(wanted.missing_in({})), testing::ElementsAre(3, 1, 2));
  EXPECT_TRUE(wanted.missing_in(wanted).empty());
  EXPECT_TRUE(QuantityKeys{kSomeRows}.missing_in({kAllRows}).empty());
  EXPECT_EQ(QuantityKeys{kAllRows}.missing_in({kSomeRows}).size(), 1U);
}

// ---- Results
// ------------------------------------------------------------------------------------------------

TEST(QuantityResults, AreFoundUnderAKeyThatServes) {
  QuantityResults results;
  results.add(kAllRows, WeightsResult{.layer = 1, .kernel = {}, .rows = {0, 1, 2, 3}, .weights = {}});
  results.add(FocusKey{2}, FocusResult{.layer = 2, .contributions = {}, .total = 0.5});
  ASSERT_NE(results.find(kAllRows), nullptr);
  EXPECT_EQ(results.find(kAllRows)->rows.size(), 4U);
  EXPECT_EQ(results.find(kSomeRows), results.find(kAllRows));
  EXPECT_EQ(results.find(FocusKey{2})->total, 0.5);
  EXPECT_EQ(results.find(FocusKey{1}), nullptr);
  EXPECT_EQ(results.find(SeenLayersKey{2}), nullptr);
  EXPECT_EQ(results.keys().size(), 2U);
  EXPECT_TRUE(results.keys().covers(kSomeRows));
}

TEST(QuantityResults, ComeInTheOrderOfTheKeys) {
  QuantityResults results;
  for (const int layer : {0, 1, 2})
    results.add(FocusKey{layer}, FocusResult{.layer = layer, .contributions = {}});
  results.add(kAllRows, {});
  results.order_as({FocusKey{2}, kAllRows, FocusKey{0}, FocusKey{1}});
  const auto maps = results.all<FocusKey>();
  ASSERT_EQ(maps.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(maps[i].key.layer, (std::vector{2, 0, 1}[i]));
    EXPECT_EQ(maps[i].result->layer, maps[i].key.layer);
    EXPECT_EQ(maps[i].result, results.find(maps[i].key));
  }
  EXPECT_NE(results.find(kAllRows), nullptr);
  EXPECT_TRUE(results.all<LogitsKey>().empty());
}

TEST(QuantityResults, AreSharedByTheirCopies) {
  QuantityResults results;
  results.add(FocusKey{2}, {});
  const FocusResult* held = results.find(FocusKey{2});
  const QuantityResults copy = results;
  results = {};
  EXPECT_EQ(copy.find(FocusKey{2}), held);
}

// ---- The quantity in a run
// ----------------------------------------------------------------------------------

class OwnQuantity : public testing::Test {
protected:
  std::shared_ptr<const RunResult> run(const QuantityKeys& keys, const std::string& layers = {}) {
    RunRequest request = fake_request("the cat sat on the warm mat", layers);
    request.quantities = keys;
    return runner_.run(request);
  }
  std::string message(const QuantityKeys& keys) {
    try {
      run(keys);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  std::shared_ptr<const FakeModel> model_ = std::make_shared<const FakeModel>(FakeOptions{});
  Runner runner_{std::size_t{1} << 20, fake_source(model_)};
};

TEST_F(OwnQuantity, IsReadOffTheLayersThatItTaps) {
  const auto result = run({SeenLayersKey{1}, FocusKey{3}, SeenLayersKey{3}, kAllRows}, "2=elu");
  const auto all = result->quantities.all<SeenLayersKey>();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].key, SeenLayersKey{1});
  EXPECT_THAT(all[0].result->layers, testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(all[0].result->kernels, testing::ElementsAre("softmax", "elu", "softmax"));
  EXPECT_THAT(all[1].result->layers, testing::ElementsAre(3));
  EXPECT_EQ(all[1].result->states, 5U); // the pass kept them for it
  EXPECT_EQ(&test::read(*result, SeenLayersKey{3}), all[1].result);
  EXPECT_THAT(model_->runs(), testing::Each(1)); // all of it in one pass
  EXPECT_EQ(result->quantities.keys().size(), 4U);
}

TEST_F(OwnQuantity, NeedsTheTappedBlocksAloneOnceTheRestIsKnown) {
  run({});
  EXPECT_THAT(test::read(*run({SeenLayersKey{2}}), SeenLayersKey{2}).layers, testing::ElementsAre(2, 3));
  EXPECT_THAT(model_->runs(), testing::ElementsAre(1, 1, 2, 2));
}

TEST_F(OwnQuantity, IsReadOffTheTeacherForcedPassWhereItSaysSo) {
  const SeenLayersKey own{}, forced{.teacher_forced = true};
  const auto result = run({forced, own}, "0-3=hydra-cosine");
  EXPECT_THAT(test::read(*result, own).kernels, testing::Each("hydra-cosine"));
  EXPECT_THAT(test::read(*result, forced).kernels, testing::Each("softmax"));
  EXPECT_EQ(test::read(*result, forced).layers.size(), 4U);
  EXPECT_EQ(result->quantities.all<SeenLayersKey>().front().key, forced); // in the order asked
}

TEST_F(OwnQuantity, ComparesWhereItsKernelIsNotTheSchedules) {
  const SeenLayersKey own{.first = 2}, same{.first = 2, .kernel = KernelSpec{"elu", {}}};
  const SeenLayersKey other{.first = 2, .kernel = KernelSpec{}};
  const Schedule schedule = parse_schedule({.layers = {"2=elu"}}, 4);
  const QuantityKeys compared = comparisons_in({own, other, same, FocusKey{1}}, schedule);
  ASSERT_EQ(compared.size(), 1U);
  EXPECT_EQ(*compared.begin(), QuantityKey(other));
  const auto result = run({own, other, same}, "2=elu");
  EXPECT_EQ(test::read(*result, own).compared, "elu");
  EXPECT_EQ(test::read(*result, same).compared, "elu");
  EXPECT_EQ(test::read(*result, other).compared, "softmax");
}

TEST_F(OwnQuantity, CountsInTheEstimateOfMemory) {
  const SeenLayersKey small{.bytes = 10}, vast{.bytes = 1e18};
  const ModelInfo& model = model_->info();
  EXPECT_DOUBLE_EQ(estimated_bytes({small}, model, 8) - estimated_bytes({}, model, 8),
                   10 * FakeModel::kWidth * 8);
  EXPECT_THAT(message({vast}), testing::HasSubstr("need about"));
  EXPECT_THAT(model_->runs(), testing::Each(0)); // refused before it is tried
}

TEST_F(OwnQuantity, ChecksItsKeys) {
  EXPECT_THROW(run({SeenLayersKey{4}}), UsageError);
  EXPECT_THROW(run({SeenLayersKey{-1}}), UsageError);
  EXPECT_THAT(message({FocusKey{1}, SeenLayersKey{4}}), testing::HasSubstr("layer 4"));
  EXPECT_THAT(model_->runs(), testing::Each(0));
}

TEST_F(OwnQuantity, FailsItsRunAndNoOther) {
  const SeenLayersKey broken{.first = 2, .broken = true};
  EXPECT_THAT(message({SeenLayersKey{0}, broken}), testing::HasSubstr("cannot be seen"));
  EXPECT_THAT(model_->runs(), testing::ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(test::read(*run({SeenLayersKey{0}}), SeenLayersKey{0}).layers,
              testing::ElementsAre(0, 1, 2, 3));
}

TEST_F(OwnQuantity, KeepsItsCacheAsLongAsTheRunnerLives) {
  run({SeenLayersKey{0}, SeenLayersKey{1}});
  EXPECT_EQ(planned_last, 2);
  run({SeenLayersKey{0}});
  EXPECT_EQ(planned_last, 3);
  Runner another(0, fake_source(model_));
  RunRequest request = fake_request("a cat");
  request.quantities = {SeenLayersKey{0}};
  another.run(request);
  EXPECT_EQ(planned_last, 1);
}

} // namespace
} // namespace hydrascope
