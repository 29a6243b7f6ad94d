// Teacher-forced runs: softmax in every layer, over texts by themselves, long pieces of several texts, or
// pictures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/measure/teacher_forced.h"
#include "engine/models/transformer/model.h"
#include "engine/run/model_store.h"

namespace hydrascope {

using LayerVisitor = std::function<void(int layer, const AttentionInput& input)>;

// Runs the model with softmax in every layer, without gradients, and visits each layer's q, k, v and input in
// order. Throws Cancelled when `stop` is requested (polled before each block), and as check_finite.
void visit_softmax_run(const std::shared_ptr<const Model>& model, const ModelInput& input,
                       const LayerVisitor& visit, const std::stop_token& stop = {});

// The sequences of one file or folder, at one length.
class SequenceSeries {
public:
  virtual ~SequenceSeries() = default;
  virtual std::optional<std::int64_t> length() const { return std::nullopt; }
  // The number of sequences; visit() skips pictures that cannot be read.
  virtual std::int64_t items() const = 0;
  // Visits every batch of sequences of one length, without padding: layers 0, 1, … of the softmax run, then
  // the next batch. `note` takes messages for the user.
  virtual void visit(const std::shared_ptr<const Model>& model, const LayerVisitor& visitor,
                     const std::stop_token& stop,
                     const std::function<void(const std::string&)>& note) const = 0;
};

struct SeriesOfData {
  std::filesystem::path data;
  std::unique_ptr<SequenceSeries> series;
};

// All series of the request, data by data, length by length; of each the request's share, which may be empty.
// Throws Error, UsageError.
std::vector<SeriesOfData> make_series(const AppliedModel& model, const TeacherForcedRequest& request,
                                      std::vector<std::string>& notes);

} // namespace hydrascope
