// The plan of a run: its model, kernels, passes and readings, checked against the model and the free memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/run/model_store.h"
#include "engine/run/pass.h"
#include "engine/run/placement.h"
#include "engine/run/reading.h"
#include "engine/run/run.h"
#include "engine/run/target.h"

namespace hydrascope {

struct RunPlan {
  Schedule schedule;
  std::shared_ptr<const std::vector<AdapterInfo>> available_adapters;
  CheckedTarget target;
  Pass own;                    // with the schedule's kernels
  std::optional<Pass> teacher; // softmax in every layer; only for teacher-forced quantities
  std::optional<Pass> other;   // of a similarity's second sentence
  std::optional<Pass> whole;   // without hidden tokens and muted heads, if the request has any
  Readings readings;
  std::vector<int> gradient_layers; // ascending: where the target's gradient is taken
};

struct LoadedModel {
  std::shared_ptr<const Model> base;
  Schedule schedule; // with the request's seed
  AppliedModel model;
  std::shared_ptr<const std::vector<AdapterInfo>> available_adapters;
};

// What a run of the request takes from the store. Throws as ModelStore::base() and apply().
LoadedModel load_for(const RunRequest& request, const Placement& placement, ModelStore& store);

// The inputs of all passes lie on the placement's device. Throws UsageError for layers, rows, queries, heads,
// classes and kernels that do not exist; Error if the run needs more memory than is available.
// `reclaimable`: bytes that are not free but would be when memory runs out.
RunPlan make_run_plan(const RunRequest& request, const Placement& placement, ModelStore& store,
                      InputPreparer& inputs, ReadingCaches& caches, std::size_t reclaimable = 0);

// The adapters for the schedule, and those whose feature maps a kernel of the schedule or a compared one
// uses.
std::vector<AdapterInfo> adapters_used(const RunPlan& plan);

} // namespace hydrascope
