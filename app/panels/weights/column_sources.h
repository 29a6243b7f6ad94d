// Whose weights stand side by side: of every kernel that is compared, on the shown schedule's q and k; or A's
// own kernel and B's own.
#pragma once

#include <vector>

#include "app/panels/panel.h"

namespace hydrascope::app {

struct ColumnSource {
  Side side = Side::a;
  KernelSpec kernel;
};

// Of the selected layer, from left to right.
std::vector<ColumnSource> column_sources(const Document& document);

} // namespace hydrascope::app
