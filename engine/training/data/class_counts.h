// Counts of a classifier's predictions, and the measures computed from them. Plain header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hydrascope::training {

// Vectors are by class.
struct ClassCounts {
  explicit ClassCounts(std::size_t classes) : actual(classes), predicted(classes), right(classes) {}

  // `best`: classes in descending order of probability; top-5 reads the first five.
  void add(std::int64_t target, std::span<const std::int64_t> best);

  std::int64_t items = 0, first = 0, among_five = 0;
  std::vector<std::int64_t> actual, predicted, right;
};

// Shares from 0 to 1; 0 without items.
double top1(const ClassCounts& counts);
double top5(const ClassCounts& counts);
// The accuracy of always answering the class that occurs most: what a classifier must exceed.
double constant_answer(const ClassCounts& counts);

// Matthews correlation coefficient, −1 to 1; for more than two classes Gorodkin's generalisation (Gorodkin
// 2004, Eq. 8). 0 if the targets or the predictions are all of one class.
double matthews_correlation(const ClassCounts& counts);

// F1 = 2 · right / (actual + predicted) of one class; 0 if it neither occurs nor is predicted.
double f1_of_class(const ClassCounts& counts, std::size_t index);
// The mean over the classes that occur or are predicted ("macro").
double f1_macro(const ClassCounts& counts);

} // namespace hydrascope::training
