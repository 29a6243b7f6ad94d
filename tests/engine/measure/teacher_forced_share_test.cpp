// Teacher-forced measuring on shares of the data, whose sums are combined: here the processes are threads,
// and the sums go through memory.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/measure/teacher_forced.h"
#include "tests/engine/models/golden.h"
#include "tests/engine/training/toy.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

using testing::make_toy_model;
using testing::make_toy_pictures;
using testing::toy_measuring;
using testing::ToyFolder;

constexpr const char* kernels = "softmax,elu,relu,hydra-cosine";

// Reductions over threads.
class Threads {
public:
  explicit Threads(int size) : size_(size), barrier_(size), parts_(static_cast<std::size_t>(size)) {}

  DataShare share(int rank) {
    return {rank, size_,
            [this, rank](std::span<double> values) {
              combine(rank, values, [](double a, double b) { return a + b; });
            },
            [this, rank](std::span<double> values) {
              combine(rank, values, [](double a, double b) { return std::min(a, b); });
            }};
  }

private:
  template <typename Operation>
  void combine(int rank, std::span<double> values, Operation operation) {
    parts_[static_cast<std::size_t>(rank)].assign(values.begin(), values.end());
    barrier_.arrive_and_wait();
    std::copy(parts_[0].begin(), parts_[0].end(), values.begin());
    for (std::size_t other = 1; other < parts_.size(); ++other) {
      EXPECT_EQ(parts_[other].size(), values.size()) << "not the same call";
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = operation(values[i], parts_[other][i]);
    }
    barrier_.arrive_and_wait();
  }

  int size_;
  std::barrier<> barrier_;
  std::vector<std::vector<double>> parts_; // by rank
};

std::vector<TeacherForcedOutcome> together(const TeacherForcedRequest& request, int size,
                                           const MeasureProgress& progress = {}) {
  Threads threads(size);
  std::vector<TeacherForcedOutcome> outcomes(static_cast<std::size_t>(size));
  std::vector<std::thread> running;
  for (int rank = 0; rank < size; ++rank)
    running.emplace_back([&, rank, own = request]() mutable {
      own.share = threads.share(rank);
      outcomes[static_cast<std::size_t>(rank)] =
          measure_teacher_forced(own, rank == 0 ? progress : MeasureProgress());
    });
  for (std::thread& one : running) one.join();
  return outcomes;
}

void expect_same(const KernelMeans& means, const KernelMeans& expected) {
  for (const auto member :
       {&KernelMeans::kl, &KernelMeans::entropy, &KernelMeans::spearman, &KernelMeans::clamped_share,
        &KernelMeans::ratio, &KernelMeans::cosine, &KernelMeans::relative_error})
    EXPECT_THAT(means.*member, ::testing::NanSensitiveDoubleNear(expected.*member, 1e-5));
}

void expect_same(const TeacherForcedOutcome& outcome, const TeacherForcedOutcome& expected) {
  ASSERT_EQ(outcome.measures.size(), expected.measures.size());
  for (std::size_t i = 0; i < expected.measures.size(); ++i) {
    const KernelMeasure& measure = outcome.measures[i];
    EXPECT_EQ(measure.kernel.text(), expected.measures[i].kernel.text());
    EXPECT_EQ(measure.items, expected.measures[i].items);
    EXPECT_EQ(measure.tokens, expected.measures[i].tokens);
    EXPECT_EQ(measure.zero_denominators, expected.measures[i].zero_denominators);
    expect_same(measure.mean, expected.measures[i].mean);
    EXPECT_THAT(measure.kl_error, ::testing::NanSensitiveDoubleNear(expected.measures[i].kl_error, 1e-5));
    for (std::size_t layer = 0; layer < measure.layers.size(); ++layer)
      expect_same(measure.layers[layer], expected.measures[i].layers[layer]);
  }
  ASSERT_EQ(outcome.scores.size(), expected.scores.size());
  for (std::size_t i = 0; i < expected.scores.size(); ++i)
    for (std::size_t layer = 0; layer < expected.scores[i].layers.size(); ++layer)
      for (std::size_t head = 0; head < expected.scores[i].layers[layer].size(); ++head) {
        const HeadScores& one = outcome.scores[i].layers[layer][head];
        const HeadScores& same = expected.scores[i].layers[layer][head];
        // Products of matrices of other sizes round otherwise, on a GPU and with AVX2's loops. Around 700 a
        // float's step is 6e-5.
        const double largest = std::max(std::abs(same.smallest), std::abs(same.largest));
        const double tolerance = std::max(1e-4, (test::tests_are_on_gpu() ? 1e-5 : 1e-6) * largest);
        EXPECT_NEAR(one.smallest, same.smallest, tolerance);
        EXPECT_NEAR(one.largest, same.largest, tolerance);
        EXPECT_NEAR(one.share_below, same.share_below, 1e-6);
      }
}

TEST(TeacherForcedShare, EveryRankHasTheWholeOutcome) {
  const ToyFolder folder;
  const TeacherForcedRequest request = toy_measuring(folder, kernels);
  const TeacherForcedOutcome alone = measure_teacher_forced(request);
  for (const int size : {2, 3, 9}) // nine: some have no text
    for (const TeacherForcedOutcome& outcome : together(request, size)) {
      SCOPED_TRACE(size);
      expect_same(outcome, alone);
    }
}

TEST(TeacherForcedShare, PiecesBeginWhereThePartDoes) {
  const ToyFolder folder;
  TeacherForcedRequest request = toy_measuring(folder, kernels);
  request.lengths = {5, 7, 16};
  const TeacherForcedOutcome alone = measure_teacher_forced(request);
  for (const int size : {2, 3, 5})
    for (const TeacherForcedOutcome& outcome : together(request, size)) {
      SCOPED_TRACE(size);
      expect_same(outcome, alone);
    }
  request.joined = true;
  expect_same(together(request, 2)[1], measure_teacher_forced(request));
}

TEST(TeacherForcedShare, PicturesAndTheirProgress) {
  const ToyFolder folder;
  TeacherForcedRequest request;
  request.model_folder = make_toy_model(folder, "dinov2");
  request.adapters.automatic = false;
  request.data = {make_toy_pictures(folder, 2)};
  std::ofstream(folder / "pictures" / "labels.txt") << "not a picture\n";
  const TeacherForcedOutcome alone = measure_teacher_forced(request); // all kernels that can
  std::int64_t last = 0;
  const auto outcomes = together(request, 2, [&](std::int64_t done, std::int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, 7 * 2);
    last = done;
  });
  EXPECT_EQ(last, 6 * 2);
  for (const TeacherForcedOutcome& outcome : outcomes) expect_same(outcome, alone);
  EXPECT_EQ(outcomes[0].notes, alone.notes);
}

} // namespace
} // namespace hydrascope
