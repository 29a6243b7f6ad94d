// The choice of adapters, and what stands behind the selected layer's kernel.
#pragma once

#include <vector>

#include "app/document/editor.h"
#include "app/ui/graphics.h"
#include "app/views/adapter_view.h"

namespace hydrascope::app {

struct AdapterNotes {
  std::vector<FoundAdapter> found;
  AdapterState state;
};

void draw_adapter_section(Editor& editor, const Graphics& graphics, const AdapterNotes& notes);

} // namespace hydrascope::app
