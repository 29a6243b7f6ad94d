// A request made concrete: which model, which kernels, which passes, and whether it fits into memory.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/run/model_store.h"
#include "engine/run/pass.h"
#include "engine/run/prefix_cache.h"
#include "engine/run/quantities/readings.h"
#include "engine/run/quantities/target.h"
#include "engine/run/run.h"

namespace hydrascope {

// One pass and what is read off it.
struct PlannedPass {
  Pass pass;
  Readings readings;
};

struct RunPlan {
  Schedule schedule;
  std::shared_ptr<const std::vector<AdapterInfo>> available_adapters;
  CheckedTarget target;
  PlannedPass own; // the schedule's kernels
  std::optional<PlannedPass>
      teacher;               // softmax in every layer; only where something teacher-forced is asked for
  std::optional<Pass> other; // a similarity's second sentence
  std::optional<Pass> whole; // where tokens are hidden or heads muted: the input with all of them, unmuted
};

// Throws UsageError for layers, rows, queries, heads, classes and kernels that do not exist; Error for a run
// that needs more memory than there is.
RunPlan make_run_plan(const RunRequest& request, ModelStore& store, InputPreparer& inputs,
                      const HeadRowCache& facts);

} // namespace hydrascope
