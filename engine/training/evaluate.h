// How well a model's classifier does on labelled data. Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/training/training.h"

namespace hydrascope {

// Classification accuracy on an image folder.
struct EvaluateRequest {
  std::filesystem::path model_folder;
  AdapterChoice adapters;
  ScheduleText schedule;
  std::filesystem::path
      data; // a sub-folder per class; names are matched with the classifier's ids, else its labels
  std::vector<std::string> classes; // sub-folders to use; empty: all
  int images_per_class = 0;         // 0: all
  int batch = 16;
  ExecutionOptions execution;
};
struct EvaluateOutcome {
  std::int64_t items = 0;
  double top1 = 0, top5 = 0; // shares from 0 to 1
  std::string model_hash;
  std::vector<AdapterInfo> adapters;
  std::vector<std::string> notes; // skipped files
};
// Throws Error, UsageError (sub-folders that match no class, all listed; a model without classifier).
EvaluateOutcome evaluate(const EvaluateRequest& request, const TrainingObserver& observer = {},
                         const std::stop_token& stop = {});

} // namespace hydrascope
