// What a run read, for tests that asked for it.
#pragma once

#include <stdexcept>
#include <vector>

#include "engine/run/quantities/hidden_states.h"
#include "engine/run/run.h"

namespace hydrascope::test {

// Throws where the run has no such result. It lives as long as the run.
template <KeyOfQuantity K>
const typename K::Result& read(const RunResult& run, const K& key) {
  const auto* result = run.quantities.find(key);
  if (result == nullptr) throw std::out_of_range("the run has no result under this key");
  return *result;
}

inline const std::vector<float>& logits(const RunResult& run) { return read(run, LogitsKey{}).values; }

} // namespace hydrascope::test
