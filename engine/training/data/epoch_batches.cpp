#include "engine/training/data/epoch_batches.h"

#include <algorithm>
#include <cstddef>

namespace hydrascope::training {

const Items& EpochBatches::of_step(const std::int64_t step) {
  const std::int64_t count = steps_per_epoch();
  const auto epoch = static_cast<std::uint64_t>(step / count);
  if (batches_.empty() || epoch != epoch_) {
    constexpr std::ptrdiff_t batches_in_run = 32;
    Items order = shuffled(items_, mix({seed_, 2, epoch}));
    const std::ptrdiff_t run = batches_in_run * batch_;
    for (auto begin = order.begin(); begin != order.end();) {
      const auto end = order.end() - begin > run ? begin + run : order.end();
      std::ranges::stable_sort(begin, end, {}, length_);
      begin = end;
    }
    const std::vector<Items> sorted = cut(order, batch_);
    batches_.clear();
    for (const std::int64_t batch : shuffled(count, mix({seed_, 5, epoch})))
      batches_.push_back(sorted[static_cast<std::size_t>(batch)]);
    epoch_ = epoch;
  }
  return batches_[static_cast<std::size_t>(step % count)];
}

} // namespace hydrascope::training
