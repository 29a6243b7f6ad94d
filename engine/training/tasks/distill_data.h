// The data of distillation: batches of texts or of pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

class DistillData {
public:
  virtual ~DistillData() = default;
  virtual std::int64_t items() const = 0;
  // The items of one batch; texts are padded to the longest and masked.
  virtual ModelInput batch(const std::vector<std::int64_t>& items) const = 0;
  // Tokens of an item. Batches have items of similar length.
  virtual std::int64_t length(std::int64_t item) const = 0;
  virtual std::vector<std::string> notes() const { return {}; }
};

// Throws Error, UsageError (nothing to train on).
std::unique_ptr<DistillData> make_distill_data(const PreparedModel& prepared, const DistillRequest& request);

} // namespace hydrascope::training
