// What was delivered for a side, found by key. A side's results come in parts (first what the selection
// needs, then what the overview panels need), all of the same input, model, schedule, target and query.
#pragma once

#include <memory>
#include <ranges>
#include <string>
#include <vector>

#include "engine/run/run.h"

namespace hydrascope::app {

struct SideResults {
  std::vector<std::shared_ptr<const RunResult>> parts; // newest last; empty before the first result
  bool fresh = false;                                  // they are of what the document asks for now
  bool stale = false; // the document asks for something else by now, not for another edition of the same
  double stale_seconds = 0; // for how long
  std::string error;        // of the last request; empty if it went well
  bool cancelled = false;   // the last request was stopped by the user

  const RunResult* any() const { return parts.empty() ? nullptr : parts.back().get(); }
};

// A result and the run that it is read off, which owns it.
template <KeyOfQuantity K>
struct Found {
  std::shared_ptr<const RunResult> run;
  const typename K::Result* result = nullptr;

  explicit operator bool() const { return result != nullptr; }
  // The result, which lives as long as its run.
  std::shared_ptr<const typename K::Result> owned() const { return {run, result}; }
};

// The newest result under a key; empty: it has not been delivered.
template <KeyOfQuantity K>
Found<K> find(const SideResults& results, const K& key) {
  for (const auto& part : results.parts | std::views::reverse)
    if (const auto* result = part->quantities.find(key)) return {part, result};
  return {};
}

} // namespace hydrascope::app
