// The data of distillation: batches of texts or of pictures, or captures.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

class DistillData {
public:
  virtual ~DistillData() = default;
  virtual std::int64_t items() const = 0;
  // Versions of each item: version v is that of item v / copies(). The first is the item itself; the others
  // are random crops.
  virtual std::int64_t copies() const { return 1; }
  // These versions as one batch; texts are padded to the longest and masked.
  virtual ModelInput batch(const std::vector<std::int64_t>& versions) const = 0;
  // The capture that holds a version, which is then a batch by itself; null: the model runs on the batch.
  virtual std::shared_ptr<const Model> capture_of(std::int64_t /*version*/) const { return nullptr; }
  // The queries of a version. Batches have versions of similar length.
  virtual std::int64_t length(std::int64_t version) const = 0;
  // SHA-256 of what was read: of the tokens of texts; of the names, sizes and times of pictures; of captures,
  // of which sequences these are and of a sample of their numbers, where a folder is among the data also of
  // the names, sizes and times of their files.
  virtual std::string hash() const = 0;
  virtual std::vector<std::string> notes() const { return {}; }
};

// Whether any of the data is a folder, whose files need not be read for a hash.
bool names_folder(const DistillRequest& request);

// Throws Error, UsageError (nothing to train on, copies of texts, too many), Cancelled (while pictures are
// read).
std::unique_ptr<DistillData> make_distill_data(const PreparedModel& prepared, const DistillRequest& request,
                                               const std::stop_token& stop = {});

} // namespace hydrascope::training
