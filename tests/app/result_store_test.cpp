// What a side has of what is wanted: delivered, pending, failed or absent.
#include "app/jobs/result_store.h"

#include <gtest/gtest.h>

#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/layer_times.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app::tests {
namespace {

using State = ResultStore::State;

const RequestKey kRequest{.request = "a picture", .settings = "a picture"};
const RequestKey kOther{.request = "another picture", .settings = "another picture"};

const WeightsKey kOwn{.layer = 1};
const WeightsKey kElu{.layer = 1, .kernel = KernelSpec{"elu", {}}};
const WeightsKey kHedgehog{.layer = 1, .kernel = KernelSpec{"hedgehog", {}}};

class ResultStoreTest : public testing::Test {
protected:
  void want(const QuantityKeys& keys, const RequestKey& request = kRequest, double now = 0) {
    store_.update(request, keys, now);
  }
  void submit(const QuantityKeys& keys, const QuantityKeys& comparisons = {},
              const RequestKey& request = kRequest) {
    ResultStore::Pending run;
    run.generation = ++generation_;
    run.of = request;
    run.keys = keys;
    run.comparisons = comparisons;
    store_.submit(std::move(run));
  }
  void submit_timing() {
    ResultStore::Pending run;
    run.of = kRequest;
    run.keys = {LayerTimesKey{}};
    run.timing = true;
    store_.submit(std::move(run));
  }
  // What the pending run has read.
  void deliver() {
    auto result = std::make_shared<RunResult>();
    result->generation = store_.pending()->generation;
    for (const FocusKey& key : store_.pending()->keys.of<FocusKey>()) result->quantities.add(key, {});
    for (const WeightsKey& key : store_.pending()->keys.of<WeightsKey>()) result->quantities.add(key, {});
    store_.deliver(std::move(result));
  }
  void run(const QuantityKeys& keys, const RequestKey& request = kRequest) {
    submit(keys, {}, request);
    deliver();
  }

  std::size_t missing(const QuantityKeys& wanted) const { return store_.missing(wanted).size(); }
  bool misses(const QuantityKeys& wanted, const QuantityKey& key) const {
    return store_.missing(wanted).covers(key);
  }
  std::size_t parts() const { return store_.results().parts.size(); }

  ResultStore store_;
  std::uint64_t generation_ = 0;
};

TEST_F(ResultStoreTest, AKeyIsAbsentThenPendingThenDelivered) {
  const QuantityKeys wanted = {FocusKey{3}, kOwn};
  want(wanted);
  EXPECT_EQ(store_.state(FocusKey{3}), State::absent);
  EXPECT_EQ(missing(wanted), 2U);
  EXPECT_FALSE(store_.fresh());
  EXPECT_FALSE(store_.pending());

  submit({FocusKey{3}});
  EXPECT_EQ(store_.state(FocusKey{3}), State::pending);
  EXPECT_EQ(store_.state(kOwn), State::absent);
  EXPECT_TRUE(misses(wanted, FocusKey{3})); // not there yet

  deliver();
  EXPECT_FALSE(store_.pending());
  EXPECT_TRUE(store_.fresh());
  EXPECT_EQ(store_.state(FocusKey{3}), State::delivered);
  EXPECT_EQ(store_.state(FocusKey{2}), State::absent);
  EXPECT_EQ(missing(wanted), 1U);
  EXPECT_TRUE(misses(wanted, kOwn));
  EXPECT_FALSE(store_.holds_all(wanted));
  EXPECT_TRUE(find(store_.results(), FocusKey{3}));
  EXPECT_FALSE(find(store_.results(), kOwn));

  run({kOwn});
  EXPECT_TRUE(store_.holds_all(wanted));
  EXPECT_EQ(missing(wanted), 0U);
  EXPECT_EQ(parts(), 2U);
  EXPECT_FALSE(store_.failed());
}

TEST_F(ResultStoreTest, AResultOwnsTheRunThatItIsReadOff) {
  want({FocusKey{3}});
  run({FocusKey{3}});
  const auto owned = find(store_.results(), FocusKey{3}).owned();
  ASSERT_NE(owned, nullptr);
  store_.set_subject("another model");
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_EQ(owned->layer, 0);
}

TEST_F(ResultStoreTest, AllRowsServeSomeOfThem) {
  const WeightsKey row{.layer = 1, .rows = {4}};
  want({row});
  submit({kOwn});
  EXPECT_EQ(store_.state(row), State::pending);
  deliver();
  EXPECT_EQ(store_.state(row), State::delivered);
  EXPECT_TRUE(store_.holds_all({row}));
  EXPECT_TRUE(find(store_.results(), row));
  // Not the reverse.
  store_.set_subject("another model");
  run({row});
  EXPECT_EQ(store_.state(kOwn), State::absent);
  EXPECT_TRUE(misses({kOwn}, kOwn));
}

TEST_F(ResultStoreTest, TheNewestResultIsFound) {
  want({FocusKey{1}});
  run({FocusKey{1}});
  run({FocusKey{1}, FocusKey{2}});
  EXPECT_EQ(find(store_.results(), FocusKey{1}).run->generation, 2U);
}

TEST_F(ResultStoreTest, ResultsOfAnotherRequestAreStaleUntilItIsUndone) {
  want({FocusKey{1}});
  run({FocusKey{1}});
  want({FocusKey{1}}, kRequest, 5);
  EXPECT_FALSE(store_.results().stale);
  EXPECT_EQ(store_.results().stale_seconds, 0);

  want({FocusKey{1}}, kOther, 10);
  EXPECT_FALSE(store_.fresh());
  EXPECT_TRUE(store_.results().stale);
  EXPECT_EQ(store_.results().stale_seconds, 0);
  EXPECT_EQ(store_.state(FocusKey{1}), State::absent);
  EXPECT_EQ(missing({FocusKey{1}}), 1U);
  EXPECT_TRUE(find(store_.results(), FocusKey{1})); // shown meanwhile
  want({FocusKey{1}}, kOther, 12.5);
  EXPECT_EQ(store_.results().stale_seconds, 2.5);

  want({FocusKey{1}}, kRequest, 13);
  EXPECT_TRUE(store_.fresh());
  EXPECT_FALSE(store_.results().stale);
  EXPECT_EQ(store_.results().stale_seconds, 0);
  EXPECT_EQ(store_.state(FocusKey{1}), State::delivered);
}

TEST_F(ResultStoreTest, TheFirstResultOfAnotherRequestReplacesAllOlderOnes) {
  want({FocusKey{1}, FocusKey{2}});
  run({FocusKey{1}});
  run({FocusKey{2}});
  want({FocusKey{1}, FocusKey{2}}, kOther);
  run({FocusKey{1}}, kOther);
  EXPECT_TRUE(store_.fresh());
  EXPECT_EQ(parts(), 1U);
  EXPECT_EQ(store_.state(FocusKey{1}), State::delivered);
  EXPECT_EQ(store_.state(FocusKey{2}), State::absent);
  want({FocusKey{1}}, kOther);
  EXPECT_FALSE(store_.results().stale);
}

TEST_F(ResultStoreTest, AnotherEditionOfAFileMakesNothingStaleButIsToBeRun) {
  const RequestKey newer{.request = "a picture, edition 2", .settings = kRequest.settings};
  want({FocusKey{1}});
  run({FocusKey{1}});
  want({FocusKey{1}}, newer, 3);
  EXPECT_FALSE(store_.results().stale);
  EXPECT_FALSE(store_.fresh());
  EXPECT_EQ(store_.state(FocusKey{1}), State::absent);
  EXPECT_EQ(missing({FocusKey{1}}), 1U);
}

TEST_F(ResultStoreTest, ARunOfAnotherRequestIsNotPendingForThisOne) {
  want({FocusKey{1}});
  submit({FocusKey{1}});
  want({FocusKey{1}}, kOther);
  EXPECT_EQ(store_.state(FocusKey{1}), State::absent);
  want({FocusKey{1}});
  EXPECT_EQ(store_.state(FocusKey{1}), State::pending);
  store_.drop_pending();
  EXPECT_EQ(store_.state(FocusKey{1}), State::absent);
  EXPECT_FALSE(store_.failed());
}

TEST_F(ResultStoreTest, AComparisonThatFailsLeavesTheRest) {
  const QuantityKeys wanted = {kOwn, kElu, FocusKey{1}};
  want(wanted);
  submit(wanted, {kElu});
  store_.fail("elu cannot run here");
  EXPECT_TRUE(store_.failed());
  EXPECT_FALSE(store_.blocked());
  EXPECT_EQ(store_.results().error, "elu cannot run here");
  EXPECT_EQ(store_.state(kElu), State::failed);
  EXPECT_EQ(store_.state(kOwn), State::absent);
  EXPECT_EQ(missing(wanted), 2U);
  EXPECT_FALSE(misses(wanted, kElu)); // there is nothing to come of it

  want(wanted);
  run(store_.missing(wanted));
  want(wanted);
  EXPECT_EQ(store_.state(kOwn), State::delivered);
  EXPECT_EQ(store_.state(FocusKey{1}), State::delivered);
  EXPECT_EQ(store_.state(kElu), State::failed);
  EXPECT_EQ(store_.results().error, "elu cannot run here"); // still said
  EXPECT_EQ(missing(wanted), 0U);
  EXPECT_FALSE(store_.holds_all(wanted));
}

TEST_F(ResultStoreTest, ComparisonsThatFailOneAfterAnotherAreAllRemembered) {
  const QuantityKeys wanted = {kOwn, kElu, kHedgehog};
  want(wanted);
  submit({kElu}, {kElu});
  store_.fail("first");
  submit({kOwn, kHedgehog}, {kHedgehog});
  store_.fail("second");
  EXPECT_EQ(store_.state(kElu), State::failed);
  EXPECT_EQ(store_.state(kHedgehog), State::failed);
  EXPECT_EQ(store_.state(kOwn), State::absent);
  EXPECT_EQ(store_.results().error, "second");
  EXPECT_FALSE(store_.blocked());
}

TEST_F(ResultStoreTest, AScheduleThatFailsBlocksItsRequest) {
  const QuantityKeys wanted = {FocusKey{1}, FocusKey{2}};
  want(wanted);
  run({FocusKey{2}});
  submit({FocusKey{1}});
  store_.fail("out of memory");
  EXPECT_TRUE(store_.blocked());
  EXPECT_EQ(store_.state(FocusKey{1}), State::failed);
  EXPECT_EQ(store_.state(FocusKey{7}), State::failed);    // whatever it is
  EXPECT_EQ(store_.state(FocusKey{2}), State::delivered); // stays
  want(wanted);
  EXPECT_TRUE(store_.blocked());

  want(wanted, kOther);
  EXPECT_FALSE(store_.failed());
  EXPECT_EQ(store_.results().error, "");
  EXPECT_EQ(store_.state(FocusKey{1}), State::absent);
}

TEST_F(ResultStoreTest, TriesAgainWhenAFailedKeyIsNoLongerWanted) {
  want({kElu, kHedgehog});
  submit({kElu, kHedgehog}, {kElu, kHedgehog});
  store_.fail("one of them cannot run");
  want({kElu, kHedgehog, FocusKey{1}}); // more is wanted: what failed has still failed
  EXPECT_EQ(store_.state(kElu), State::failed);
  want({kElu});
  EXPECT_FALSE(store_.failed());
  EXPECT_EQ(store_.results().error, "");
  EXPECT_EQ(store_.state(kElu), State::absent);
  EXPECT_TRUE(misses({kElu}, kElu));

  // The schedule's own as well.
  submit({kOwn, FocusKey{1}});
  store_.fail("out of memory");
  want({FocusKey{1}});
  EXPECT_FALSE(store_.blocked());
  EXPECT_EQ(store_.state(FocusKey{1}), State::absent);
}

TEST_F(ResultStoreTest, WhatWasCancelledWaitsUntilItIsAskedForAgain) {
  want({FocusKey{1}});
  store_.cancel(); // nothing runs
  EXPECT_FALSE(store_.failed());
  EXPECT_FALSE(store_.results().cancelled);

  submit({FocusKey{1}});
  store_.cancel();
  EXPECT_FALSE(store_.pending());
  EXPECT_TRUE(store_.blocked());
  EXPECT_TRUE(store_.results().cancelled);
  EXPECT_EQ(store_.results().error, "");
  EXPECT_EQ(store_.state(FocusKey{1}), State::failed);
  want({FocusKey{1}});
  EXPECT_TRUE(store_.blocked());

  store_.clear_failure();
  EXPECT_FALSE(store_.failed());
  EXPECT_FALSE(store_.results().cancelled);
  EXPECT_EQ(store_.state(FocusKey{1}), State::absent);
  run({FocusKey{1}});
  EXPECT_EQ(store_.state(FocusKey{1}), State::delivered);
}

TEST_F(ResultStoreTest, ClearingAFailureForgetsItsError) {
  want({kOwn, kElu});
  submit({kOwn, kElu}, {kElu});
  store_.fail("elu cannot run here");
  store_.clear_failure();
  EXPECT_FALSE(store_.failed());
  EXPECT_EQ(store_.results().error, "");
  EXPECT_EQ(missing({kOwn, kElu}), 2U);
}

TEST_F(ResultStoreTest, RunsForTheirTimesDeliverNothingAndFailNothing) {
  want({FocusKey{1}});
  run({FocusKey{1}});
  submit_timing();
  deliver();
  EXPECT_EQ(parts(), 1U);
  EXPECT_FALSE(store_.pending());
  EXPECT_EQ(store_.state(LayerTimesKey{}), State::absent);
  EXPECT_EQ(store_.state(FocusKey{1}), State::delivered);

  submit_timing();
  store_.fail("out of memory");
  EXPECT_EQ(store_.results().error, "out of memory");
  EXPECT_FALSE(store_.failed());
  submit_timing();
  store_.cancel();
  EXPECT_FALSE(store_.pending());
  EXPECT_FALSE(store_.failed());
  EXPECT_FALSE(store_.results().cancelled);
}

TEST_F(ResultStoreTest, OfManyPartsTheOldestThatHoldNothingWantedAreDropped) {
  const int runs = static_cast<int>(ResultStore::most_parts) + 2;
  for (int layer = 0; layer < runs; ++layer) {
    want({FocusKey{0}, FocusKey{layer}});
    run({FocusKey{layer}});
  }
  want({FocusKey{0}, FocusKey{runs - 1}});
  EXPECT_EQ(parts(), ResultStore::most_parts);
  EXPECT_EQ(store_.state(FocusKey{0}), State::delivered); // the oldest of all, but wanted
  EXPECT_TRUE(find(store_.results(), FocusKey{0}));
  for (const int dropped : {1, 2}) {
    EXPECT_EQ(store_.state(FocusKey{dropped}), State::absent);
    EXPECT_FALSE(find(store_.results(), FocusKey{dropped}));
  }
  for (int layer = 3; layer < runs; ++layer) EXPECT_EQ(store_.state(FocusKey{layer}), State::delivered);
  EXPECT_EQ(store_.results().any()->generation, generation_);
}

TEST_F(ResultStoreTest, NothingThatIsWantedIsDropped) {
  const int runs = 2 * static_cast<int>(ResultStore::most_parts);
  QuantityKeys wanted;
  for (int layer = 0; layer < runs; ++layer) wanted.add(FocusKey{layer});
  for (int layer = 0; layer < runs; ++layer) {
    want(wanted);
    run({FocusKey{layer}});
  }
  want(wanted);
  EXPECT_EQ(parts(), static_cast<std::size_t>(runs));
  EXPECT_TRUE(store_.holds_all(wanted));
}

TEST_F(ResultStoreTest, APartWhoseKeysAnotherServesIsDropped) {
  const QuantityKeys wanted = {WeightsKey{.layer = 1, .rows = {4}}, kOwn};
  want(wanted);
  run({WeightsKey{.layer = 1, .rows = {4}}});
  run({kOwn});
  for (std::size_t i = 2; i <= ResultStore::most_parts; ++i) {
    want(wanted);
    run({FocusKey{static_cast<int>(i)}});
  }
  want(wanted);
  EXPECT_EQ(parts(), ResultStore::most_parts);
  EXPECT_TRUE(store_.holds_all(wanted));
  EXPECT_EQ(find(store_.results(), WeightsKey{.layer = 1, .rows = {4}}).run->generation, 2U);
}

TEST_F(ResultStoreTest, ResultsOfAnotherSubjectAreGone) {
  store_.set_subject("image a model");
  want({FocusKey{1}});
  run({FocusKey{1}});
  store_.set_subject("image a model");
  EXPECT_EQ(store_.state(FocusKey{1}), State::delivered);

  store_.set_subject("text another model");
  EXPECT_EQ(parts(), 0U);
  EXPECT_EQ(store_.results().any(), nullptr);
  EXPECT_FALSE(store_.fresh());
  EXPECT_EQ(store_.state(FocusKey{1}), State::absent);
  EXPECT_EQ(missing({FocusKey{1}}), 1U);
}

} // namespace
} // namespace hydrascope::app::tests
