// The parameters of the selected layer's kernel, as the registry describes them.
#pragma once

#include <string>

#include "app/document/editor.h"
#include "app/ui/graphics.h"

namespace hydrascope::app {

class KernelParametersView {
public:
  // `shape`: of attention in the model's layers; what a slider spans depends on it. `reason`: why the kernel
  // with its parameters cannot run; empty if it can.
  void draw(Editor& editor, const Graphics& graphics, const LayerShape& shape, const std::string& reason);

private:
  bool everywhere_ = false; // changes go to all layers with this kernel
};

} // namespace hydrascope::app
