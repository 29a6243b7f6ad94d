// The sequences that are measured teacher-forced: texts by themselves, long pieces of many, or pictures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/measure/softmax_run.h"
#include "engine/measure/teacher_forced.h"
#include "engine/run/model_store.h"

namespace hydrascope {

// One file or folder at one length.
class SequenceSeries {
public:
  virtual ~SequenceSeries() = default;
  virtual std::optional<std::int64_t> length() const { return std::nullopt; }
  // Sequences that visit() will show; pictures that cannot be read turn out fewer.
  virtual std::int64_t items() const = 0;
  // Shows every batch of sequences of one length, without padding: layer 0, 1, … of the softmax run, then
  // the next batch. `note`: what the user should know.
  virtual void visit(const std::shared_ptr<const Model>& model, const LayerVisitor& visitor,
                     const std::stop_token& stop,
                     const std::function<void(const std::string&)>& note) const = 0;
};

struct SeriesOfData {
  std::filesystem::path data;
  std::unique_ptr<SequenceSeries> series;
};

// All series that the request names, data by data, length by length; of each, the part of the request's share
// (which may be nothing). Throws Error, UsageError.
std::vector<SeriesOfData> make_series(const AppliedModel& model, const TeacherForcedRequest& request,
                                      std::vector<std::string>& notes);

} // namespace hydrascope
