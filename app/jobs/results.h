// What the worker delivered for a side, as the panels find it. A side's results come in parts (first what the
// selection needs, then what the overview panels need), all of the same input, model, schedule, target and
// query.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/run.h"

namespace hydrascope::app {

struct SideResults {
  std::vector<std::shared_ptr<const RunResult>> parts; // newest last; empty before the first result
  bool stale = false;                                  // the document asks for something else by now
  double stale_seconds = 0;                            // for how long
  std::string error;                                   // of the last request; empty if it went well
  bool cancelled = false;                              // the last request was stopped by the user

  const RunResult* any() const { return parts.empty() ? nullptr : parts.back().get(); }
};

// A focus result and the run that holds it.
struct FoundFocus {
  const RunResult* run = nullptr;
  const FocusResult* focus = nullptr;
};
FoundFocus find_focus(const SideResults& results, int layer);

struct FoundWeights {
  std::shared_ptr<const RunResult> run;
  const WeightsResult* weights = nullptr;
};
// Of all query rows; with `row`, any that hold this one.
FoundWeights find_weights(const SideResults& results, int layer, const KernelSpec& kernel,
                          bool teacher_forced, std::optional<std::int64_t> row = {},
                          bool value_weighted = false);

struct FoundVectors {
  std::shared_ptr<const RunResult> run;
  const VectorsResult* vectors = nullptr;
};
// As asked for with one kernel.
FoundVectors find_vectors(const SideResults& results, const VectorsAsk& ask);

const AttentionRowResult* find_attention_row(const SideResults& results, const AttentionRowAsk& ask);
const RolloutResult* find_rollout(const SideResults& results, const RolloutAsk& ask);
const TileResult* find_tile(const SideResults& results, const TileAsk& ask);

// The part that holds how far every head lies from this one; null if there is none.
std::shared_ptr<const RunResult> find_similar_heads(const SideResults& results, HeadIndex head);
// The part that holds this deletion curve.
std::shared_ptr<const RunResult> find_deletion(const SideResults& results, const DeletionAsk& ask);

struct FoundTable {
  const RunResult* run = nullptr;
  const HeadTable* table = nullptr;
};
FoundTable find_table(const SideResults& results, const HeadTableAsk& ask);

} // namespace hydrascope::app
