// Which adapters hold trained parameters of a layer's kernel, as the Kernels panel says it. Plain header.
#pragma once

#include <string>
#include <vector>

#include "engine/run/run.h"

namespace hydrascope::app {

struct FoundAdapter {
  AdapterInfo info;
  bool bundled = false; // else a file of the user's
  bool applied = false; // to the run
  bool holds = false;   // parameters trained for this kernel in this layer
};

// The bundled adapters of the run's model and those applied to it; in the order of application, the others
// after them.
std::vector<FoundAdapter> found_adapters(const RunResult& run, int layer, const KernelSpec& kernel);

// What stands behind the layer's parameters, in one line.
struct AdapterState {
  std::string text;     // "bundled, trained at 257 tokens: vit-small-…"
  bool warning = false; // untrained, or trained at another resolution
};
AdapterState adapter_state(const RunResult& run, int layer, const std::vector<FoundAdapter>& found);

} // namespace hydrascope::app
