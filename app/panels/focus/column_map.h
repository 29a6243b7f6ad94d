// What the Focus panel asks a run for, and where it finds it: one map of one side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/panels/panel.h"
#include "app/views/attention_view.h"
#include "app/views/focus_view.h"

namespace hydrascope::app {

void add_map_keys(const Document& document, QuantityKeys& keys);

struct ColumnMap {
  const RunResult* run = nullptr; // that knows query and target
  TokenMap map;
  std::vector<float> raw; // focus: contributions as they are, one a token
  std::string flags;      // "untrained", "derived, signed"; empty if there is nothing to say
};

// nullopt as long as the side has not delivered it.
std::optional<ColumnMap> find_column_map(const SideResults& results, const Document& document, MapKind kind);

FocusOptions focus_options(const Document& document);

} // namespace hydrascope::app
