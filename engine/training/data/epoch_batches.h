// The batches of each epoch. Plain header.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/training/data/sampling.h"

namespace hydrascope::training {

// The items of an epoch are shuffled, then sorted by length within runs of some batches, so that texts need
// little padding, then the batches are shuffled. All is a function of the seed and the step.
class EpochBatches {
public:
  EpochBatches(std::int64_t items, int batch, std::uint64_t seed,
               std::function<std::int64_t(std::int64_t item)> length)
      : items_(items), batch_(batch), seed_(seed), length_(std::move(length)) {}

  std::int64_t steps_per_epoch() const { return ceil_divide(items_, batch_); }
  // The items of step 0, 1, …, counted over all epochs; valid until the next call.
  const Items& of_step(std::int64_t step);

private:
  std::int64_t items_;
  int batch_;
  std::uint64_t seed_;
  std::function<std::int64_t(std::int64_t item)> length_;
  std::vector<Items> batches_; // of epoch_
  std::uint64_t epoch_ = 0;
};

} // namespace hydrascope::training
