// A request made concrete: which model, which kernels, which passes, what is read off them, and whether it
// fits into memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/run/model_store.h"
#include "engine/run/pass.h"
#include "engine/run/reading.h"
#include "engine/run/run.h"
#include "engine/run/target.h"

namespace hydrascope {

struct RunPlan {
  Schedule schedule;
  std::shared_ptr<const std::vector<AdapterInfo>> available_adapters;
  CheckedTarget target;
  Pass own;                    // the schedule's kernels
  std::optional<Pass> teacher; // softmax in every layer; only where something teacher-forced is asked for
  std::optional<Pass> other;   // a similarity's second sentence
  std::optional<Pass> whole;   // where tokens are hidden or heads muted: the input with all of them, unmuted
  Readings readings;
  std::vector<int> gradient_layers; // ascending: where the target's gradient is taken
};

// Throws UsageError for layers, rows, queries, heads, classes and kernels that do not exist; Error for a run
// that needs more memory than there is.
RunPlan make_run_plan(const RunRequest& request, ModelStore& store, InputPreparer& inputs,
                      ReadingCaches& caches);

} // namespace hydrascope
