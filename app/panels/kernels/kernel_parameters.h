// The parameters of the selected layer's kernel, with controls made from the registry.
#pragma once

#include <string>

#include "app/document/editor.h"
#include "app/ui/graphics.h"

namespace hydrascope::app {

class KernelParametersView {
public:
  // The ranges of the sliders depend on `shape`, that of attention in the layers. `reason`: why the kernel
  // with its parameters cannot run; empty if it can.
  void draw(Editor& editor, const Graphics& graphics, const LayerShape& shape, const std::string& reason);

private:
  bool everywhere_ = false; // changes apply to all layers with this kernel
};

} // namespace hydrascope::app
